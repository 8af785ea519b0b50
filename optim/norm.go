package optim

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/device"
)

// Norm computes the global norm of gradients: squares are summed over blocks of
// device.NormBlock elements, the blocks of a parameter in the canonical tree,
// the parameters in the order of their names. So the result is equal to the bit
// however parameters are cut into segments. One goroutine uses it.
type Norm struct {
	dev    device.Device
	blocks device.Buf // F64, the blocks of all segments
	starts []int      // where a segment's blocks start; one more for the end
	order  []int      // segments by name, then by Lo
	sum    CanonicalSum
}

// NewNorm returns a Norm for these segments, of which Grad is not looked at.
func NewNorm(dev device.Device, segments []Segment) (*Norm, error) {
	n := &Norm{dev: dev, starts: []int{0}}
	for i, s := range segments {
		if err := s.check(); err != nil {
			return nil, err
		}
		n.starts = append(n.starts, n.starts[i]+blocksIn(s.Hi-s.Lo))
		n.order = append(n.order, i)
	}
	slices.SortStableFunc(n.order, func(a, b int) int {
		if c := strings.Compare(segments[a].Param.Name, segments[b].Param.Name); c != 0 {
			return c
		}
		return segments[a].Lo - segments[b].Lo
	})
	var err error
	n.blocks, err = dev.Alloc(device.F64, n.starts[len(segments)])
	if err != nil {
		return nil, fmt.Errorf("optim: memory for norms: %w", err)
	}
	return n, nil
}

func blocksIn(elements int) int { return (elements + device.NormBlock - 1) / device.NormBlock }

// Blocks computes the squares of all blocks and waits for the device. The
// segments are those of NewNorm, in the same order, with gradients. Nodes and
// Global read the result.
func (n *Norm) Blocks(segments []Segment) error {
	n.enqueue(segments)
	return n.dev.Sync()
}

func (n *Norm) enqueue(segments []Segment) {
	if len(segments) != len(n.order) {
		panic(fmt.Sprintf("optim: norm of %d segments, NewNorm had %d", len(segments), len(n.order)))
	}
	k := n.dev.Kernels()
	for i := range segments {
		k.SumSquares(n.of(i), segments[i].Grad)
	}
}

// of is where the blocks of segment i are.
func (n *Norm) of(i int) device.Buf { return n.blocks.Slice(n.starts[i], n.starts[i+1]) }

// Nodes appends the partial sums of segment i, to be sent to whoever pushes
// those of all shards of the parameter, in order of Lo, into a CanonicalSum.
// The squared norm is then the sum of the parameters' totals in name order.
func (n *Norm) Nodes(segments []Segment, i int, to []Node) []Node {
	n.sum.Start(segments[i].Lo / device.NormBlock)
	n.add(i)
	return n.sum.Nodes(to)
}

func (n *Norm) add(i int) {
	for _, v := range n.of(i).F64() {
		n.sum.Add(v)
	}
}

// Global computes the norm over segments that cover their parameters wholly, a
// parameter in as many segments as may be; a gap panics.
func (n *Norm) Global(segments []Segment) (float64, error) {
	if err := n.Blocks(segments); err != nil {
		return 0, err
	}
	total := 0.0
	n.parameters(segments, func(_ []int, sum float64) { total += sum })
	return math.Sqrt(total), nil
}

// Totals sets, for each segment, the sum of squares over all of its parameter,
// which the segments cover wholly; a gap panics. It reads what Blocks computed.
func (n *Norm) Totals(segments []Segment, totals []float64) {
	n.parameters(segments, func(of []int, sum float64) {
		for _, i := range of {
			totals[i] = sum
		}
	})
}

// parameters calls f for each parameter, in the order of their names, with its
// segments and its sum of squares.
func (n *Norm) parameters(segments []Segment, f func(of []int, sum float64)) {
	n.sum.Start(0)
	first := 0
	for at, i := range n.order {
		s := &segments[i]
		if s.Lo != n.sum.next*device.NormBlock {
			panic(fmt.Sprintf("optim: norm of %s: elements below %d are missing", s.Param.Name, s.Lo))
		}
		n.add(i)
		if at+1 == len(n.order) || segments[n.order[at+1]].Param != s.Param {
			f(n.order[first:at+1], n.sum.Total())
			n.sum.Start(0)
			first = at + 1
		}
	}
}

// ClipScale returns what to multiply gradients of this norm by, so that their
// norm is at most limit: min(1, limit / (norm + 1e-6)), as PyTorch has it. A
// limit of 0 clips nothing. A norm that is no finite number gives 0 or NaN; the
// caller decides beforehand whether to step at all.
func ClipScale(norm, limit float64) float32 {
	if limit <= 0 {
		return 1
	}
	scale := limit / (norm + 1e-6)
	if scale > 1 {
		return 1
	}
	return float32(scale)
}
