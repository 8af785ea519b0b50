package nn

import "github.com/gradfusion/gradfusion/device"

type addOp struct {
	a, b, y *Var
	moved   bool // the gradient of y has become that of an input
}

// Add returns a + b, of equal shape and layout. After a BatchNorm its residual
// argument does the same in one pass.
func (t *Tape) Add(layer string, a, b *Var) *Var {
	if a.Shape != b.Shape {
		fail(layer, "add", "%s and %s differ in shape", a.Shape, b.Shape)
	}
	op := Record[addOp](t)
	op.a, op.b, op.y = a, b, t.Output(a.Shape, a, b)
	t.kernels.Add(op.y.Value, a.Value, b.Value)
	return op.y
}

func (op *addOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok {
		return
	}
	op.pass(t, op.a, dy)
	op.pass(t, op.b, dy)
}

// pass lets the first input that can take it have the memory of dy.
func (op *addOp) pass(t *Tape, x *Var, dy device.Buf) {
	if !x.NeedsGrad() {
		return
	}
	dx, accumulate := t.gradOver(x, op.y)
	switch {
	case accumulate:
		t.kernels.Add(dx, dx, dy)
	case op.y.hasGrad || op.moved:
		t.copy(dx, dy)
	default:
		op.moved = true // dx is dy
	}
}

func (op *addOp) BackwardWeight(*Tape) {}
