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
	op := Record[activationOp](t)
	op.x, op.f = x, f
	op.y = t.Output(x.Shape, x)
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
	dx, accumulate := t.GradOf(op.x)
	saved := op.y
	if op.f.SavesInput() {
		saved = op.x
	}
	t.kernels.ActivateBackward(op.f, dx, dy, saved.Value, accumulate)
}

func (op *activationOp) BackwardWeight(*Tape) {}
