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
	known     *sums // nil: none are kept
}

func (tr trial) String() string {
	return fmt.Sprintf("%v %v of %d %v, root %d, by %s, in place %v", tr.kind, tr.op, tr.length, tr.typ, tr.root, tr.algorithm, tr.inPlace)
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
	var want []float64
	whole := func(r int) []float64 { return tr.values(n, r, 0, tr.length) }
	part := func(r int) []float64 { return tr.values(n, r, parts[r], parts[r+1]) }
	isRoot := me == tr.root
	switch tr.kind {
	case plan.Barrier:
	case plan.AllReduce, plan.Reduce:
		c.In = pack(tr.typ, whole(me))
		if tr.kind == plan.AllReduce || isRoot {
			want = tr.combined(n, 0, tr.length)
		}
		c.Out = pack(tr.typ, make([]float64, tr.length))
	case plan.Broadcast:
		c.In = pack(tr.typ, whole(me))
		want = whole(tr.root)
		c.Out = pack(tr.typ, make([]float64, tr.length))
	case plan.AllGather, plan.Gather:
		c.In = pack(tr.typ, part(me))
		if tr.kind == plan.AllGather || isRoot {
			for r := range n {
				want = append(want, part(r)...)
			}
			c.Out = pack(tr.typ, make([]float64, tr.length))
		}
		if tr.inPlace && c.Out.Len > 0 {
			copy(c.Out.Slice(parts[me], parts[me+1]).Bytes(), c.In.Bytes())
			c.In = c.Out
		}
	case plan.ReduceScatter:
		c.In = pack(tr.typ, whole(me))
		c.Out = pack(tr.typ, make([]float64, parts[me+1]-parts[me]))
		want = tr.combined(n, parts[me], parts[me+1])
	case plan.Scatter:
		c.Out = pack(tr.typ, make([]float64, parts[me+1]-parts[me]))
		want = tr.values(n, tr.root, parts[me], parts[me+1])
		if isRoot {
			c.In = pack(tr.typ, whole(me))
		} else if tr.inPlace {
			c.In = c.Out
		}
	case plan.AllToAll:
		want = tr.allToAll(&c, n, me)
	}
	result := c.Out
	before := bytes.Clone(c.In.Bytes())
	if tr.inPlace {
		tr.place(&c, &result, parts, me, isRoot)
	}
	if err := g.Start(ctx, c).Wait(ctx); err != nil {
		return fmt.Errorf("%v: %w", tr, err)
	}
	if !tr.inPlace && !bytes.Equal(before, c.In.Bytes()) {
		return fmt.Errorf("%v: the input was changed", tr)
	}
	if want != nil && !bytes.Equal(result.Bytes(), pack(tr.typ, want).Bytes()) {
		return fmt.Errorf("%v: got %v, want %v", tr, first(unpack(result)), first(want))
	}
	return nil
}

// place turns an out-of-place call into its in-place form.
func (tr trial) place(c *collective.Call, result *device.Buf, parts []int, me int, isRoot bool) {
	c.Out = device.Buf{Type: tr.typ}
	*result = c.In
	if tr.kind == plan.ReduceScatter || tr.kind == plan.Scatter && isRoot {
		*result = c.In.Slice(parts[me], parts[me+1])
	}
}

// allToAll fills the call's buffers; sizes may differ per pair.
func (tr trial) allToAll(c *collective.Call, n, me int) (want []float64) {
	size := func(from, to int) int {
		if tr.sizes != nil {
			if tr.inPlace { // in place needs equal parts both ways
				from, to = min(from, to), max(from, to)
			}
			return tr.sizes[from][to]
		}
		return (tr.length + n - 1) / n
	}
	part := func(from, to int) []float64 {
		return tr.values(n, from, 1000*to, 1000*to+size(from, to))
	}
	var in []float64
	inBounds, outBounds := []int{0}, []int{0}
	for r := range n {
		in, want = append(in, part(me, r)...), append(want, part(r, me)...)
		inBounds, outBounds = append(inBounds, len(in)), append(outBounds, len(want))
	}
	c.In, c.Out = pack(tr.typ, in), pack(tr.typ, make([]float64, len(want)))
	if tr.sizes != nil {
		c.InBounds, c.OutBounds = inBounds, outBounds
	}
	return want
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
	if tr.known != nil {
		kept := tr.known
		tr.known = nil
		return kept.of(n, tr.length, func() []float64 { return tr.combined(n, 0, tr.length) })[lo:hi]
	}
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
	b := device.FromBytes(t, make([]byte, len(v)*t.Size()))
	for i, x := range v {
		switch t {
		case device.F32:
			b.F32()[i] = float32(x)
		case device.F64:
			b.F64()[i] = x
		case device.I32:
			b.I32()[i] = int32(x)
		case device.I64:
			b.I64()[i] = int64(x)
		case device.I8:
			b.I8()[i] = int8(x)
		case device.U8:
			b.Bytes()[i] = byte(x)
		case device.BF16:
			b.U16()[i] = uint16(math.Float32bits(float32(x)) >> 16)
		case device.F16:
			b.U16()[i] = half(x)
		}
	}
	return b
}

// half is a small integer as a 16-bit float.
func half(x float64) uint16 {
	if x == 0 {
		return 0
	}
	bits := math.Float32bits(float32(x))
	return uint16(bits>>16&0x8000) | uint16((bits&0x7fffffff-112<<23)>>13)
}

func unpack(b device.Buf) []float64 {
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
			v[i] = float64(b.U16()[i]) // raw
		}
	}
	return v
}

func first(v []float64) []float64 { return v[:min(len(v), 16)] }
