package nn

import "github.com/gradfusion/gradfusion/device"

type linearOp struct {
	x, w, b, y *Var
	in         device.Buf    // x as it is read
	d          device.MatMul // of the forward pass
}

// Linear returns x w^T + b: x is rows x in, or sequences x tokens x in, w is out
// x in, b has out elements or is nil. Several layers may share w, as an embedding
// and the logits do: each use has a gradient of its own.
func (t *Tape) Linear(x *Var, w, b *Param) *Var {
	checkLinear(x, w, b)
	op := Record[linearOp](t)
	op.begin(t, x, w, b)
	t.kernels.MatMul(op.d, op.y.Value, op.in, op.w.Value, op.bias())
	return op.y
}

func checkLinear(x *Var, w, b *Param) {
	layer := layerOf(w)
	if len(w.Shape) != 2 || (b != nil && b.Len() != w.Shape[0]) {
		fail(layer, "linear", "weight of shape %s and bias of %s: want out x in, and out", w.shape(), b.shape())
	}
	in := w.Shape[1]
	if !x.Shape.isRows() {
		fail(layer, "linear", "input of shape %s, want rows x %d: flatten it first", x.Shape, in)
	}
	if _, columns := x.Shape.matrix(); columns != in {
		fail(layer, "linear", "input of shape %s has %d columns, the weight of shape %s takes %d",
			x.Shape, columns, w.shape(), in)
	}
}

// begin uses the parameters and makes the output of the operation that was
// recorded last.
func (op *linearOp) begin(t *Tape, x *Var, w, b *Param) {
	out, in := w.Shape[0], w.Shape[1]
	rows, _ := x.Shape.matrix()
	op.x, op.w = x, w.read(t, false)
	op.in = t.operand(x)
	op.d = device.MatMul{M: rows, N: out, K: in, TransB: true}
	if b != nil {
		op.b = b.Use(t)
	}
	op.y = t.product(x.Shape.withColumns(out), x, op.w, op.b)
}

func (op *linearOp) bias() device.Buf {
	if op.b == nil {
		return device.Buf{}
	}
	return op.b.Value
}

// BackwardInput computes dx = dy w.
func (op *linearOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	dx, accumulate := t.GradOf(op.x)
	t.kernels.MatMul(device.MatMul{M: op.d.M, N: op.d.K, K: op.d.N, Accumulate: accumulate}, dx, dy, op.w.Value, device.Buf{})
}

// BackwardWeight computes db, the sum of dy's rows, and dw = dy^T x.
func (op *linearOp) BackwardWeight(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok {
		return
	}
	if op.b.NeedsGrad() {
		db, accumulate := t.GradOf(op.b)
		t.kernels.SumRows(db, dy, op.d.M, op.d.N, accumulate)
		t.Deliver(op.b)
	}
	if op.w.NeedsGrad() {
		dw, accumulate := t.GradOf(op.w)
		d := device.MatMul{M: op.d.N, N: op.d.K, K: op.d.M, TransA: true, Accumulate: accumulate}
		t.kernels.MatMul(d, dw, dy, op.in, device.Buf{})
		t.Deliver(op.w)
	}
}
