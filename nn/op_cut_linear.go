package nn

import "github.com/gradfusion/gradfusion/device"

// columnOp is a Linear of which each partner has a run of the outputs: the
// gradient of its input is the sum of all partners'.
type columnOp struct {
	linearOp
	partners Partners
	layer    string

	started    bool
	dx         device.Buf
	accumulate bool
	sum        device.Buf // what is summed: dx, or memory apart from it
	pending    Pending    // nil where no gradient flows
}

// ColumnLinear is Linear for x that all partners hold alike and a weight whose
// outputs are dealt to them: the result has this partner's columns. The sum of
// the input's gradient travels while the weight's is computed.
func (t *Tape) ColumnLinear(x *Var, w, b *Param, partners Partners) *Var {
	checkLinear(x, w, b)
	requirePart(w, 0)
	op := Record[columnOp](t)
	op.partners, op.layer = partners, layerOf(w)
	op.begin(t, x, w, b)
	op.y.partners, op.y.part = partners, w.Part
	t.kernels.MatMul(op.d, op.y.Value, op.in, op.w.Value, op.bias())
	return op.y
}

// RowLinear is Linear for x of which each partner has the columns that its part
// of the weight's inputs takes: partial results are summed, the first half of
// the rows while the second is computed, and all partners hold the result alike.
// The bias is whole; one partner adds it.
func (t *Tape) RowLinear(x *Var, w, b *Param, partners Partners) *Var {
	checkLinear(x, w, b)
	requirePart(w, 1)
	op := Record[linearOp](t)
	op.begin(t, x, w, b)
	var bias device.Buf
	if partners.Rank() == 0 {
		bias = op.bias()
	}
	layer, sum := layerOf(w), op.y.Value
	if sum.Type != device.F32 { // rounded once, after the sum
		sum = t.arena.Get(device.F32, op.y.Value.Len)
	}
	half := op.d.M
	if sum.Size() >= worthOverlapping {
		half = (op.d.M + 1) / 2
	}
	first := op.product(t, sum, bias, 0, half, partners, layer)
	if half < op.d.M {
		settle(op.product(t, sum, bias, half, op.d.M, partners, layer), layer, sumOfOutputs)
	}
	settle(first, layer, sumOfOutputs)
	if sum.Type != op.y.Value.Type {
		t.kernels.Cast(op.y.Value, sum)
		t.arena.Put(sum)
	}
	return op.y
}

const (
	// worthOverlapping is the size in bytes from which the sum of a part takes
	// longer than starting another call.
	worthOverlapping = 256 << 10

	sumOfOutputs   = "sum of the partners' outputs"
	sumOfGradients = "sum of the partners' gradients"
)

// product computes rows [lo, hi) and starts their sum.
func (op *linearOp) product(t *Tape, sum, bias device.Buf, lo, hi int, partners Partners, layer string) Pending {
	d := op.d
	d.M = hi - lo
	part := sum.Slice(lo*d.N, hi*d.N)
	t.kernels.MatMul(d, part, op.in.Slice(lo*d.K, hi*d.K), op.w.Value, bias)
	return partners.Start(device.Sum, part, layer)
}

// requirePart panics unless w is cut along dim.
func requirePart(w *Param, dim int) {
	if w.Part == nil || w.Part.Dim != dim {
		fail(layerOf(w), "cut", "the weight of shape %s is not a part along dimension %d", w.shape(), dim)
	}
}

// start computes this partner's gradient of the input and begins to sum it, in
// whichever half of the backward pass comes first.
func (op *columnOp) start(t *Tape) {
	if op.started {
		return
	}
	op.started = true
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	op.dx, op.accumulate = t.GradOf(op.x)
	op.sum = t.partOf(op.dx, op.accumulate)
	t.kernels.MatMul(device.MatMul{M: op.d.M, N: op.d.K, K: op.d.N}, op.sum, dy, op.w.Value, device.Buf{})
	op.pending = op.partners.Start(device.Sum, op.sum, op.layer)
}

// BackwardWeight comes first in a pass that runs both halves of each operation.
func (op *columnOp) BackwardWeight(t *Tape) {
	op.start(t)
	op.linearOp.BackwardWeight(t)
}

// BackwardInput returns when the sum is there.
func (op *columnOp) BackwardInput(t *Tape) {
	op.start(t)
	if op.pending == nil {
		return
	}
	settle(op.pending, op.layer, sumOfGradients)
	op.pending = nil
	t.addPart(op.dx, op.sum, op.accumulate)
}
