package parallel

import (
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// table is what a bucket has whose one parameter has a sparse gradient. grad is
// zero but for the rows that the parameter says were touched.
type table struct {
	param        *nn.Param
	count, width int        // rows and their length
	grad         device.Buf // the bucket's, without padding

	own  nn.SparseGrad // what this rank sends where leaves add up
	tree rowCounter    // deterministic: this rank's nodes

	counts, allCounts []int32 // rows by node; wholly for a node that has all rows
	rows, allRows     []int32
	bytes, allBytes   []byte // values as 16-bit floats
	values, allValues []float32
	bounds            []int
	sparse            int // steps in which rows travelled; the others fell back
}

// wholly is the count of a node with a gradient of which any row may have changed.
const wholly = -1

func newTable(p *nn.Param) *table {
	return &table{param: p, count: p.Shape[0], width: p.Len() / p.Shape[0]}
}

// checkTables refuses sparse gradients that cannot be summed by rows.
func checkTables(s Stage, cfg FusionConfig) error {
	for _, p := range nn.Params(s.Blocks) {
		switch _, tied := s.Tied[p.Name]; {
		case !p.Sparse:
		case len(p.Shape) != 2:
			return fmt.Errorf("parallel: %s has a sparse gradient, which only a table of two dimensions can have, and its shape is %v", p.Name, p.Shape)
		case tied:
			return fmt.Errorf("parallel: %s has a sparse gradient and is tied to other stages, whose gradients have all rows", p.Name)
		case cfg.Wire.keeps():
			return fmt.Errorf("parallel: %s has a sparse gradient, of which rows travel as f32, f16 or bf16, not as %s", p.Name, cfg.Wire.Format)
		case p.Part != nil:
			return fmt.Errorf("parallel: %s has a sparse gradient and is cut over partners, which hold parts of its rows", p.Name)
		}
	}
	return nil
}

// sparseLast returns params with those of sparse gradients at the end.
func sparseLast(params []*nn.Param) []*nn.Param {
	out := slices.DeleteFunc(slices.Clone(params), func(p *nn.Param) bool { return p.Sparse })
	for _, p := range params {
		if p.Sparse {
			out = append(out, p)
		}
	}
	return out
}

// empty is leaf for a micro-batch that did not run.
func (t *table) empty(index int) {
	n := rowNode{lo: index, size: 1, grad: t.tree.spare()}
	n.grad.Rows = n.grad.Rows[:0]
	n.grad.Resize(0)
	t.param.ZeroGrad()
	t.tree.push(n, t.width)
}

// leaf takes a micro-batch's gradient out of grad, which is zero again.
func (t *table) leaf(index int) {
	n := rowNode{lo: index, size: 1, grad: t.tree.spare()}
	if !t.param.SparseGrad(n.grad) {
		n.grad.Rows = t.everyRow(n.grad.Rows[:0])
		n.grad.Resize(t.count * t.width)
		copy(n.grad.Values.F32(), t.grad.F32())
		n.whole = true
	}
	t.param.ZeroGrad()
	t.tree.push(n, t.width)
}

// rowsOf is how many rows a node of that count sends.
func (t *table) rowsOf(count int32) int {
	if count == wholly {
		return t.count
	}
	return int(count)
}

// pack lays out what this rank sends: one node, or those of its leaves.
func (t *table) pack(deterministic bool) {
	t.counts, t.rows, t.values = t.counts[:0], t.rows[:0], t.values[:0]
	if !deterministic {
		if !t.param.SparseGrad(&t.own) {
			t.counts = append(t.counts, wholly)
			return
		}
		t.counts = append(t.counts, int32(len(t.own.Rows)))
		t.rows = append(t.rows, t.own.Rows...)
		return
	}
	for _, n := range t.tree.nodes {
		count := int32(len(n.grad.Rows))
		if n.whole {
			count = wholly
		} else {
			t.rows = append(t.rows, n.grad.Rows...)
		}
		t.counts = append(t.counts, count)
		t.values = append(t.values, n.grad.Values.F32()...)
	}
}

// foldNodes adds what was gathered over the canonical tree.
func (t *table) foldNodes(count, ranks int) {
	t.tree.clear()
	var at []rowNode
	for p := range ranks {
		lo, hi := data.Run(count, ranks, p)
		nodesOf(lo, hi, func(lo, size int) { at = append(at, rowNode{lo: lo, size: size}) })
	}
	i := 0
	values := t.allValues
	t.eachNode(func(rows []int32) {
		n := at[i]
		n.grad = t.tree.spare()
		n.grad.Rows = append(n.grad.Rows[:0], rows...)
		n.grad.Resize(len(rows) * t.width)
		values = values[copy(n.grad.Values.F32(), values):]
		t.tree.push(n, t.width)
		i++
	})
	if sum := t.tree.finish(t.width); sum != nil {
		t.add(sum.Rows, sum.Values.F32())
		t.tree.spares = append(t.tree.spares, sum)
	}
}

// add adds rows to grad.
func (t *table) add(rows []int32, values []float32) {
	grad := t.grad.F32()
	for k, i := range rows {
		to := grad[int(i)*t.width : (int(i)+1)*t.width]
		for j, v := range values[k*t.width : (k+1)*t.width] {
			to[j] += v
		}
	}
}

// rowNode is the sum of leaves [lo, lo+size) by rows; see node.
type rowNode struct {
	lo, size int
	grad     *nn.SparseGrad
	whole    bool
}

// rowCounter is counter for sums by rows. A row that a leaf does not have counts
// as zero there, and adding that changes no bit, because sums of gradients are
// never -0: the rows are those of the dense sum to the bit.
type rowCounter struct {
	nodes  []rowNode
	spares []*nn.SparseGrad
}

func (c *rowCounter) spare() *nn.SparseGrad {
	n := len(c.spares)
	if n == 0 {
		return &nn.SparseGrad{}
	}
	g := c.spares[n-1]
	c.spares = c.spares[:n-1]
	return g
}

// push appends a node and adds up the pairs that it completes.
func (c *rowCounter) push(n rowNode, width int) {
	c.nodes = append(c.nodes, n)
	for len(c.nodes) > 1 {
		a, b := c.nodes[len(c.nodes)-2], c.nodes[len(c.nodes)-1]
		if a.size != b.size || a.lo%(2*a.size) != 0 {
			return
		}
		c.fold(width)
	}
}

// finish folds the nodes into one, from right to left; nil when there are none.
func (c *rowCounter) finish(width int) *nn.SparseGrad {
	for len(c.nodes) > 1 {
		c.fold(width)
	}
	if len(c.nodes) == 0 {
		return nil
	}
	g := c.nodes[0].grad
	c.nodes = c.nodes[:0]
	return g
}

// clear forgets the nodes.
func (c *rowCounter) clear() {
	for _, n := range c.nodes {
		c.spares = append(c.spares, n.grad)
	}
	c.nodes = c.nodes[:0]
}

// fold adds the last two nodes.
func (c *rowCounter) fold(width int) {
	last := len(c.nodes) - 1
	a, b := c.nodes[last-1], c.nodes[last]
	sum := c.spare()
	mergeRows(sum, a.grad, b.grad, width)
	c.spares = append(c.spares, a.grad, b.grad)
	c.nodes = c.nodes[:last]
	c.nodes[last-1] = rowNode{lo: a.lo, size: a.size + b.size, grad: sum, whole: a.whole || b.whole}
}

// mergeRows sets sum to a + b.
func mergeRows(sum, a, b *nn.SparseGrad, width int) {
	sum.Rows = sum.Rows[:0]
	i, j := 0, 0
	for i < len(a.Rows) || j < len(b.Rows) {
		switch {
		case j == len(b.Rows) || i < len(a.Rows) && a.Rows[i] < b.Rows[j]:
			sum.Rows = append(sum.Rows, a.Rows[i])
			i++
		case i == len(a.Rows) || b.Rows[j] < a.Rows[i]:
			sum.Rows = append(sum.Rows, b.Rows[j])
			j++
		default:
			sum.Rows = append(sum.Rows, a.Rows[i])
			i, j = i+1, j+1
		}
	}
	sum.Resize(len(sum.Rows) * width)
	i, j = 0, 0
	for k, row := range sum.Rows {
		to := sum.Values.F32()[k*width : (k+1)*width]
		switch {
		case i == len(a.Rows) || a.Rows[i] != row:
			j += copy(to, b.Values.F32()[j*width:]) / width
		case j == len(b.Rows) || b.Rows[j] != row:
			i += copy(to, a.Values.F32()[i*width:]) / width
		default:
			x, y := a.Values.F32()[i*width:], b.Values.F32()[j*width:]
			for c := range to {
				to[c] = x[c] + y[c]
			}
			i, j = i+1, j+1
		}
	}
}

// noteRows tells the optimizer which rows the summed gradients have.
func (g *GradFusion) noteRows() {
	for i := range g.segments {
		s := &g.segments[i]
		if !s.Param.Sparse {
			continue
		}
		rows, all := s.Param.TouchedRows()
		if !all && rows == nil {
			rows = []int32{}
		}
		s.Rows = rows
	}
}
