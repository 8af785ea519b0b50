package nn

import "github.com/gradfusion/gradfusion/device"

type activationOp struct {
	x, y *Var
	f    device.Activation
}

// Activate returns f of every element of x.
func (t *Tape) Activate(f device.Activation, x *Var) *Var {
	if f == device.Identity {
		return x
	}
	return t.activate(f, x, false)
}

// activate writes over x when nobody reads that afterwards: neither who made
// it, in the backward pass, nor anybody else.
func (t *Tape) activate(f device.Activation, x *Var, over bool) *Var {
	op := Record[activationOp](t)
	op.x, op.f = x, f
	if over && x.owned && !f.SavesInput() {
		op.y = t.newVar()
		op.y.Shape, op.y.Value, op.y.needs, op.y.owned = x.Shape, x.Value, x.needs, true
		x.owned = false
	} else {
		op.y = t.Output(x.Shape, x)
	}
	t.kernels.Activate(f, op.y.Value, x.Value)
	if f == device.Sigmoid && x.Shape.padded() {
		t.clearPadding(op.y)
	}
	return op.y
}

// clearPadding makes the padding channels zero again after a function that is
// not zero at zero.
func (t *Tape) clearPadding(y *Var) {
	s := y.Shape
	n, c, h, w := s.Dims[0], s.Dims[1], s.Dims[2], s.Dims[3]
	plain := t.arena.Get(device.F32, n*c*h*w)
	t.kernels.Reorder(plain, device.Plain, y.Value, s.Layout, n, c, h, w)
	t.kernels.Reorder(y.Value, s.Layout, plain, device.Plain, n, c, h, w)
	t.arena.Put(plain)
}

func (op *activationOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	dx, accumulate := t.gradOver(op.x, op.y)
	saved := op.y
	if op.f.SavesInput() {
		saved = op.x
	}
	t.kernels.ActivateBackward(op.f, dx, dy, saved.Value, accumulate)
}

func (op *activationOp) BackwardWeight(*Tape) {}
