package parallel

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/wire"
)

// tableReduction sums tables with sparse gradients, in a queue and on a Comm of
// its own, beside the reduction of all other buckets. Of a table of V rows of W
// elements, of which R ranks touched n rows together, each rank sends
//
//	all-gather of the numbers of rows    1 (R-1)/R elements a rank
//	all-gather of the rows' indices      n (R-1)/R
//	all-gather of the rows               n W (R-1)/R
//
// and adds the rows in the order of the ranks, or, in deterministic mode, over the
// canonical tree, in which every row's sum has the bits of the dense one. Where n
// is so large that the dense sum, of 2 V W (R-1)/R elements, sends less, that
// takes the place of the last all-gather; all ranks know n and decide alike. A
// 16-bit wire holds for rows too, unless it is for the way between hosts only.
type tableReduction struct {
	reduction // of other buckets
	r         *reducer
	comm      collective.Comm
	half      *wire.Codec // of a 16-bit wire; nil for float32 and where nothing is sent
	tables    *queue
}

// newTableReduction is collective over the stage's ranks.
func newTableReduction(ctx context.Context, r *reducer) (*tableReduction, error) {
	comm, err := collective.Twin(ctx, r.comm)
	if err != nil {
		return nil, fmt.Errorf("a group for sparse gradients: %w", err)
	}
	t := &tableReduction{reduction: r.reduction, r: r, comm: comm}
	if w := r.cfg.Wire; !w.off() && r.comm.Size() > 1 {
		t.half = &wire.Codec{Format: wire.NewHalf(w.Format == "bf16")}
	}
	t.tables = newQueue(func(b *bucket) error { return t.sum(r.ctx, b) })
	return t, nil
}

func (t *tableReduction) start(b *bucket) *collective.Work {
	if b.table == nil {
		return t.reduction.start(b)
	}
	return t.tables.start(b)
}

func (t *tableReduction) close() {
	t.tables.close()
	t.reduction.close()
	_ = t.comm.Close() // its calls have ended, with errors of their own
}

// sum leaves the sum over all ranks in b.grad, and says to the parameter which
// rows that has.
func (t *tableReduction) sum(ctx context.Context, b *bucket) error {
	x := b.table
	x.pack(t.r.cfg.Deterministic)
	if err := t.gatherRows(ctx, x, b.label); err != nil {
		return err
	}
	whole := false
	total := 0
	for _, n := range x.allCounts {
		whole = whole || n == wholly
		total += x.rowsOf(n)
	}
	var err error
	if t.worthwhile(x, total) {
		x.sparse++
		err = t.sumRows(ctx, x, b.label)
	} else {
		err = t.sumDense(ctx, b)
	}
	x.param.Touch(x.allRows, whole)
	return err
}

// worthwhile reports whether rows take fewer bytes than the dense sum.
func (t *tableReduction) worthwhile(x *table, total int) bool {
	ranks, nodes := t.comm.Size(), len(x.allCounts)
	switch {
	case ranks == 1:
		return true
	case t.r.cfg.Deterministic:
		return total*ranks < x.count*(nodes+ranks)
	}
	return total < 2*x.count
}

// gatherRows fills allCounts and allRows.
func (t *tableReduction) gatherRows(ctx context.Context, x *table, label string) error {
	bounds := []int{0}
	for p := range t.comm.Size() {
		nodes := 1
		if t.r.cfg.Deterministic {
			nodes = countNodes(data.Run(t.r.count, t.comm.Size(), p))
		}
		bounds = append(bounds, bounds[p]+nodes)
	}
	x.allCounts = resize(x.allCounts, bounds[t.comm.Size()])
	if err := t.gather(ctx, device.FromI32(x.counts), device.FromI32(x.allCounts), bounds, "rows of "+label); err != nil {
		return err
	}
	x.bounds = append(x.bounds[:0], 0)
	rows := []int{0}
	for p := range t.comm.Size() {
		listed, sent := 0, 0
		for _, n := range x.allCounts[bounds[p]:bounds[p+1]] {
			listed, sent = listed+max(int(n), 0), sent+x.rowsOf(n)
		}
		rows = append(rows, rows[p]+listed)
		x.bounds = append(x.bounds, x.bounds[p]+sent*x.width)
	}
	x.allRows = resize(x.allRows, rows[t.comm.Size()])
	return t.gather(ctx, device.FromI32(x.rows), device.FromI32(x.allRows), rows, "rows of "+label)
}

func (t *tableReduction) gather(ctx context.Context, in, out device.Buf, bounds []int, label string) error {
	if t.comm.Size() == 1 {
		copy(out.Bytes(), in.Bytes())
		return nil
	}
	return t.comm.Start(ctx, collective.Call{Kind: plan.AllGather, In: in, Out: out, InBounds: bounds, Label: label}).Wait(ctx)
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// sumRows gathers all rows and adds them up.
func (t *tableReduction) sumRows(ctx context.Context, x *table, label string) error {
	ranks := t.comm.Size()
	if ranks == 1 && !t.r.cfg.Deterministic {
		return nil
	}
	own := device.FromF32(x.values)
	if !t.r.cfg.Deterministic {
		own = x.own.Values
		if x.counts[0] == wholly {
			own = x.grad
		}
	}
	if t.half != nil && !t.r.cfg.Wire.AcrossHosts {
		return t.sumHalves(ctx, x, own.F32(), label)
	}
	x.allValues = resize(x.allValues, x.bounds[ranks])
	if err := t.gather(ctx, own, device.FromF32(x.allValues), x.bounds, label); err != nil {
		return err
	}
	x.param.ZeroGrad()
	if t.r.cfg.Deterministic {
		x.foldNodes(t.r.count, ranks)
	} else {
		values := x.allValues
		x.eachNode(func(rows []int32) {
			x.add(rows, values)
			values = values[len(rows)*x.width:]
		})
	}
	return nil
}

// sumHalves is sumRows with rows that travel as 16-bit floats: they are rounded
// once, also a rank's own, and added in float32.
func (t *tableReduction) sumHalves(ctx context.Context, x *table, own []float32, label string) error {
	size := t.half.EncodedLen(1)
	x.bytes, x.allBytes = resize(x.bytes, len(own)*size), resize(x.allBytes, x.bounds[t.comm.Size()]*size)
	t.half.Format.Encode(x.bytes, own, 0)
	for i := range x.bounds {
		x.bounds[i] *= size
	}
	if err := t.gather(ctx, device.FromU8(x.bytes), device.FromU8(x.allBytes), x.bounds, label); err != nil {
		return err
	}
	x.param.ZeroGrad()
	grad, from := x.grad.F32(), x.allBytes
	x.eachNode(func(rows []int32) {
		for _, i := range rows {
			t.half.Format.DecodeAdd(grad[int(i)*x.width:(int(i)+1)*x.width], from[:x.width*size])
			from = from[x.width*size:]
		}
	})
	return nil
}

// eachNode calls f with the rows of every node that was gathered, in order.
func (x *table) eachNode(f func(rows []int32)) {
	rows := x.allRows
	for _, n := range x.allCounts {
		list := rows[:max(n, 0)]
		rows = rows[len(list):]
		if n == wholly {
			list = x.everyRow(nil)
		}
		f(list)
	}
}

// everyRow appends the indices of all rows.
func (x *table) everyRow(to []int32) []int32 {
	to = slices.Grow(to, x.count)
	for i := range x.count {
		to = append(to, int32(i))
	}
	return to
}

// sumDense is the sum over all elements.
func (t *tableReduction) sumDense(ctx context.Context, b *bucket) error {
	if !t.r.cfg.Deterministic {
		call := collective.Call{Kind: plan.AllReduce, In: b.grad, Label: b.label}
		if t.half != nil {
			call.Codec, call.AcrossHosts = t.half, t.r.cfg.Wire.AcrossHosts
		}
		return t.comm.Start(ctx, call).Wait(ctx)
	}
	x := b.table
	for _, n := range x.tree.nodes {
		leaf, err := t.leafBuffer(b)
		if err != nil {
			return err
		}
		for k, i := range n.grad.Rows {
			copy(leaf.F32()[int(i)*x.width:(int(i)+1)*x.width], n.grad.Values.F32()[k*x.width:])
		}
		b.tree.nodes = append(b.tree.nodes, node{lo: n.lo, size: n.size, buf: leaf})
	}
	x.tree.clear()
	dense := reducer{cfg: t.r.cfg, comm: t.comm, count: t.r.count}
	return dense.reduceCanonical(ctx, b)
}

// leafBuffer returns zeroed memory for a leaf of a bucket, which only this
// goroutine takes for a table.
func (t *tableReduction) leafBuffer(b *bucket) (device.Buf, error) {
	n := len(b.spares)
	if n == 0 {
		return t.r.cfg.Device.Alloc(device.F32, b.grad.Len)
	}
	leaf := b.spares[n-1]
	b.spares = b.spares[:n-1]
	clear(leaf.F32())
	return leaf, nil
}
