package nn

import "github.com/gradfusion/gradfusion/device"

type dropoutOp struct {
	x, y *Var
	p    float32
	seed uint64
}

// Dropout sets each element to zero with probability p and scales the others by
// 1/(1-p); in evaluation it returns x. The mask depends on the pass, the
// layer's name and how often the name was used before, and on nothing else, so
// that a pipeline stage draws what the whole model would. Srivastava et al. 2014.
func (t *Tape) Dropout(layer string, x *Var, p float32) *Var {
	if !(p >= 0 && p < 1) {
		fail(layer, "dropout", "probability %g is outside of [0, 1)", p)
	}
	if !t.Pass.Training || p == 0 {
		return x
	}
	op := Record[dropoutOp](t)
	op.x, op.p, op.seed = x, p, t.Seed(layer)
	op.y = t.Output(x.Shape, x)
	t.kernels.Dropout(op.y.Value, x.Value, p, op.seed)
	return op.y
}

func (op *dropoutOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	dx, accumulate := t.gradOver(op.x, op.y)
	if !accumulate {
		t.kernels.Dropout(dx, dy, op.p, op.seed)
		return
	}
	part := t.arena.Get(device.F32, dx.Len)
	t.kernels.Dropout(part, dy, op.p, op.seed)
	t.kernels.Add(dx, dx, part)
	t.arena.Put(part)
}

func (op *dropoutOp) BackwardWeight(*Tape) {}
