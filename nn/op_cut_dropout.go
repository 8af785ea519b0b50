package nn

import "github.com/gradfusion/gradfusion/device"

type cutDropoutOp struct {
	x, y *Var
	p    float32
	seed uint64
	part *Part
}

// CutDropout is Dropout of x of which this partner has the columns that part
// says: it drops those elements that Dropout of the whole would.
func (t *Tape) CutDropout(layer string, x *Var, p float32, part *Part) *Var {
	if !(p >= 0 && p < 1) {
		fail(layer, "dropout", "probability %g is outside of [0, 1)", p)
	}
	if len(part.Runs) != 1 {
		fail(layer, "dropout", "a part of %d runs, want 1", len(part.Runs))
	}
	if x.Shape.Rank != 2 || x.Shape.Layout != device.Plain || x.Shape.Dims[1] != part.Width() {
		fail(layer, "dropout", "input of shape %s, want rows x %d, which is this partner's part", x.Shape, part.Width())
	}
	if !t.Pass.Training || p == 0 {
		return x
	}
	op := Record[cutDropoutOp](t)
	op.x, op.p, op.seed, op.part = x, p, t.Seed(layer), part
	op.y = t.Output(x.Shape, x)
	op.drop(t, op.y.Value, x.Value, false)
	return op.y
}

// drop runs the kernel on the whole matrix, in which the other partners' columns
// are zeros, because the mask is a function of the place in it.
func (op *cutDropoutOp) drop(t *Tape, y, x device.Buf, accumulate bool) {
	rows, width, columns, at := op.x.Shape.Dims[0], op.part.Width(), op.part.Columns(), op.part.Runs[0].Lo
	whole := t.arena.Get(x.Type, rows*columns)
	t.kernels.Fill(whole, 0)
	t.kernels.CopyChannels(device.Plain, whole, columns, at, x, width, rows, 1, 1)
	t.kernels.Dropout(whole, whole, op.p, op.seed)
	t.kernels.ExtractChannels(device.Plain, y, width, whole, columns, at, rows, 1, 1, accumulate)
	t.arena.Put(whole)
}

func (op *cutDropoutOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	dx, accumulate := t.GradOf(op.x)
	op.drop(t, dx, dy, accumulate)
}

func (op *cutDropoutOp) BackwardWeight(*Tape) {}
