package nn

import "github.com/gradfusion/gradfusion/device"

// Reshape gives x other dimensions in row-major order. No bytes move unless x
// is in the Blocked16 layout, which is first made Plain.
func (t *Tape) Reshape(layer string, x *Var, dims ...int) *Var {
	s := Plain(dims...)
	if s.Len() != x.Shape.Rows()*x.Shape.Features() {
		fail(layer, "reshape", "input of shape %s does not become %s", x.Shape, s)
	}
	return t.View(t.Reorder(layer, x, device.Plain), s)
}

// Flatten makes x a matrix of rows x features.
func (t *Tape) Flatten(layer string, x *Var) *Var {
	return t.Reshape(layer, x, x.Shape.Rows(), x.Shape.Features())
}

type reorderOp struct{ x, y *Var }

// Reorder returns images x in the given layout: x itself when it is in it.
func (t *Tape) Reorder(layer string, x *Var, layout device.Layout) *Var {
	if x.Shape.Layout == layout {
		return x
	}
	if x.Shape.Rank != 4 {
		fail(layer, "reorder", "input of shape %s, want images", x.Shape)
	}
	s := x.Shape
	s.Layout = layout
	op := Record[reorderOp](t)
	op.x, op.y = x, t.Output(s, x)
	op.move(t, op.y.Value, layout, x.Value, x.Shape.Layout)
	return op.y
}

func (op *reorderOp) move(t *Tape, dst device.Buf, to device.Layout, src device.Buf, from device.Layout) {
	d := op.x.Shape.Dims
	t.kernels.Reorder(dst, to, src, from, d[0], d[1], d[2], d[3])
}

func (op *reorderOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	dx, accumulate := t.GradOf(op.x)
	part := dx
	if accumulate {
		part = t.arena.Get(device.F32, dx.Len)
	}
	op.move(t, part, op.x.Shape.Layout, dy, op.y.Shape.Layout)
	if accumulate {
		t.kernels.Add(dx, dx, part)
		t.arena.Put(part)
	}
}

func (op *reorderOp) BackwardWeight(*Tape) {}
