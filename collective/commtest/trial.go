package commtest

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// trial is one call whose result is known.
type trial struct {
	kind      plan.Kind
	op        collective.Op
	typ       device.Type
	length    int // of the whole vector; AllToAll: of what a rank sends
	root      int
	bounds    []int
	sizes     [][]int // AllToAll: elements from rank i to rank j
	algorithm string
	inPlace   bool
	memory    device.Buf // of the group, for calls in place; none: any
	shared    *vectors   // of all ranks of this process, summed; nil: each makes its own
}

func (tr trial) String() string {
	return fmt.Sprintf("%v %v of %d %v, root %d, by %s, in place %v, registered %v", tr.kind, tr.op, tr.length, tr.typ, tr.root, tr.algorithm, tr.inPlace, tr.memory.Len > 0)
}

// run starts the call on this rank and compares its result.
func (tr trial) run(ctx context.Context, g collective.Comm) error {
	n, me := g.Size(), g.Rank()
	parts := tr.bounds
	if parts == nil {
		parts = plan.Cut(tr.length, n)
	}
	c := collective.Call{Kind: tr.kind, Op: tr.op, Root: tr.root, Algorithm: tr.algorithm, Label: tr.String()}
	if tr.kind != plan.AllToAll {
		c.InBounds = tr.bounds
	}
	var want []device.Buf // one after the other
	whole := func(r int) device.Buf { return tr.input(n, r, 0, tr.length) }
	part := func(r int) device.Buf { return tr.input(n, r, parts[r], parts[r+1]) }
	isRoot := me == tr.root
	switch tr.kind {
	case plan.Barrier:
	case plan.AllReduce, plan.Reduce:
		c.In, c.Out = whole(me), empty(tr.typ, tr.length)
		if tr.kind == plan.AllReduce || isRoot {
			want = []device.Buf{tr.sum(n, 0, tr.length)}
		}
	case plan.Broadcast:
		c.In, c.Out = whole(me), empty(tr.typ, tr.length)
		want = []device.Buf{whole(tr.root)}
	case plan.AllGather, plan.Gather:
		c.In = part(me)
		if tr.kind == plan.AllGather || isRoot {
			c.Out = empty(tr.typ, tr.length)
			for r := range n {
				want = append(want, part(r))
			}
		}
	case plan.ReduceScatter:
		c.In, c.Out = whole(me), empty(tr.typ, parts[me+1]-parts[me])
		want = []device.Buf{tr.sum(n, parts[me], parts[me+1])}
	case plan.Scatter:
		c.Out = empty(tr.typ, parts[me+1]-parts[me])
		want = []device.Buf{tr.input(n, tr.root, parts[me], parts[me+1])}
		if isRoot {
			c.In = whole(me)
		}
	case plan.AllToAll:
		want = tr.allToAll(&c, n, me)
	}
	before, result := c.In, c.Out
	if tr.inPlace {
		result = tr.place(&c, parts, me, isRoot)
	} else {
		c.In = clone(before)
	}
	if err := g.Start(ctx, c).Wait(ctx); err != nil {
		return fmt.Errorf("%v: %w", tr, err)
	}
	if !tr.inPlace && !bytes.Equal(before.Bytes(), c.In.Bytes()) {
		return fmt.Errorf("%v: the input was changed", tr)
	}
	at := 0
	for i, w := range want {
		if at+w.Len > result.Len {
			return fmt.Errorf("%v: a result of %d elements", tr, result.Len)
		}
		got := result.Slice(at, at+w.Len)
		if !bytes.Equal(got.Bytes(), w.Bytes()) {
			return fmt.Errorf("%v: part %d: got %v, want %v", tr, i, unpack(got), unpack(w))
		}
		at += w.Len
	}
	if want != nil && at != result.Len {
		return fmt.Errorf("%v: a result of %d elements, not %d", tr, result.Len, at)
	}
	return nil
}

// place turns an out-of-place call into its in-place form, in memory of its own
// or of the group, and returns where its result will be.
func (tr trial) place(c *collective.Call, parts []int, me int, isRoot bool) (result device.Buf) {
	own := func(b device.Buf) device.Buf {
		if tr.memory.Len == 0 {
			return clone(b)
		}
		own := tr.memory.As(tr.typ).Slice(0, b.Len)
		copy(own.Bytes(), b.Bytes())
		return own
	}
	switch {
	case tr.kind == plan.AllGather || tr.kind == plan.Gather && isRoot:
		c.Out = own(c.Out)
		copy(c.Out.Slice(parts[me], parts[me+1]).Bytes(), c.In.Bytes())
		c.In = c.Out
	case tr.kind == plan.Scatter && !isRoot:
		c.In = c.Out
	default:
		c.In = own(c.In)
	}
	c.Out = device.Buf{Type: tr.typ}
	if tr.kind == plan.ReduceScatter || tr.kind == plan.Scatter && isRoot {
		return c.In.Slice(parts[me], parts[me+1])
	}
	return c.In
}

// allToAll fills the call's buffers; sizes may differ per pair.
func (tr trial) allToAll(c *collective.Call, n, me int) (want []device.Buf) {
	size := func(from, to int) int {
		if tr.sizes != nil {
			if tr.inPlace { // in place needs equal parts both ways
				from, to = min(from, to), max(from, to)
			}
			return tr.sizes[from][to]
		}
		return (tr.length + n - 1) / n
	}
	part := func(from, to int) device.Buf {
		return tr.input(n, from, 1000*to, 1000*to+size(from, to))
	}
	inBounds, outBounds := []int{0}, []int{0}
	for r := range n {
		want = append(want, part(r, me))
		inBounds, outBounds = append(inBounds, inBounds[r]+size(me, r)), append(outBounds, outBounds[r]+size(r, me))
	}
	c.In, c.Out = empty(tr.typ, inBounds[n]), empty(tr.typ, outBounds[n])
	for r := range n {
		copy(c.In.Slice(inBounds[r], inBounds[r+1]).Bytes(), part(me, r).Bytes())
	}
	if tr.sizes != nil {
		c.InBounds, c.OutBounds = inBounds, outBounds
	}
	return want
}

// input returns rank r's elements [lo, hi), which are only read.
func (tr trial) input(n, r, lo, hi int) device.Buf {
	if tr.shared != nil {
		return tr.shared.input(tr.typ, r, lo, hi)
	}
	return pack(tr.typ, tr.values(n, r, lo, hi))
}

// sum returns the reduction of all ranks' elements [lo, hi), which is only read.
func (tr trial) sum(n, lo, hi int) device.Buf {
	if tr.shared != nil {
		return tr.shared.sum(tr.typ, tr.length).Slice(lo, hi)
	}
	return pack(tr.typ, tr.combined(n, lo, hi))
}

// values are rank r's elements [lo, hi): small integers, such that no result of
// any rank count in the suite overflows or rounds.
func (tr trial) values(n, r, lo, hi int) []float64 {
	v := make([]float64, hi-lo)
	signed := tr.typ != device.U8
	for i := range v {
		x := float64((r*31+(lo+i)*7+(lo+i)/5)%8) + 1
		switch {
		case tr.op == collective.Prod:
			x = float64(1 + (r+lo+i)%3%2) // 1 or 2
		case tr.op == collective.Mean:
			x = float64(n * ((r + lo + i) % 3))
		}
		if signed && (r+lo+i)%4 == 0 {
			x = -x
		}
		v[i] = x
	}
	return v
}

// combined is the reduction of all ranks' elements [lo, hi).
func (tr trial) combined(n, lo, hi int) []float64 {
	v := tr.values(n, 0, lo, hi)
	for r := 1; r < n; r++ {
		for i, x := range tr.values(n, r, lo, hi) {
			switch tr.op {
			case collective.Prod:
				v[i] *= x
			case collective.Max:
				v[i] = max(v[i], x)
			case collective.Min:
				v[i] = min(v[i], x)
			default:
				v[i] += x
			}
		}
	}
	if tr.op == collective.Mean {
		for i := range v {
			v[i] /= float64(n)
		}
	}
	return v
}

// pack makes a buffer of small integers; they are exact in every type.
func pack(t device.Type, v []float64) device.Buf {
	b := empty(t, len(v))
	switch t {
	case device.F32:
		convert(b.F32(), v)
	case device.F64:
		convert(b.F64(), v)
	case device.I32:
		convert(b.I32(), v)
	case device.I64:
		convert(b.I64(), v)
	case device.I8:
		convert(b.I8(), v)
	case device.U8:
		convert(b.Bytes(), v)
	case device.BF16:
		for i, to := 0, b.U16(); i < len(v); i++ {
			to[i] = uint16(math.Float32bits(float32(v[i])) >> 16)
		}
	case device.F16:
		for i, to := 0, b.U16(); i < len(v); i++ {
			to[i] = half(v[i])
		}
	}
	return b
}

func convert[T float32 | float64 | int32 | int64 | int8 | byte](to []T, from []float64) {
	for i, x := range from {
		to[i] = T(x)
	}
}

func empty(t device.Type, length int) device.Buf {
	return device.FromBytes(t, make([]byte, length*t.Size()))
}

func clone(b device.Buf) device.Buf { return device.FromBytes(b.Type, bytes.Clone(b.Bytes())) }

// half is a small integer as a 16-bit float.
func half(x float64) uint16 {
	if x == 0 {
		return 0
	}
	bits := math.Float32bits(float32(x))
	return uint16(bits>>16&0x8000) | uint16((bits&0x7fffffff-112<<23)>>13)
}

// unpack is the way back, of the first elements; halves stay as they are.
func unpack(b device.Buf) []float64 {
	b = b.Slice(0, min(b.Len, 16))
	v := make([]float64, b.Len)
	for i := range v {
		switch b.Type {
		case device.F32:
			v[i] = float64(b.F32()[i])
		case device.F64:
			v[i] = b.F64()[i]
		case device.I32:
			v[i] = float64(b.I32()[i])
		case device.I64:
			v[i] = float64(b.I64()[i])
		case device.I8:
			v[i] = float64(b.I8()[i])
		case device.U8:
			v[i] = float64(b.Bytes()[i])
		default:
			v[i] = float64(b.U16()[i])
		}
	}
	return v
}
