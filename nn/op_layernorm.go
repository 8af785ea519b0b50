package nn

import "github.com/gradfusion/gradfusion/device"

type layerNormOp struct {
	x, y, scale, shift *Var
	factor, offset     device.Buf // scale and shift as they are read
	mean, invstd       device.Buf
	dscale, dshift     device.Buf
	d                  device.LayerNorm
	computed, reached  bool
}

// LayerNorm returns scale (x - mean) / sqrt(variance + epsilon) + shift for each
// row of a matrix or token of a sequence, with the mean and biased variance of
// its own elements. scale and shift have one element a column. Ba, Kiros and
// Hinton 2016.
func (t *Tape) LayerNorm(x *Var, scale, shift *Param, epsilon float32) *Var {
	layer := layerOf(scale)
	if !x.Shape.isRows() {
		fail(layer, "layer norm", "input of shape %s, want rows x %d", x.Shape, scale.Len())
	}
	rows, columns := x.Shape.matrix()
	if scale.Len() != columns || shift.Len() != columns {
		fail(layer, "layer norm", "input of shape %s has %d columns, the layer has %d", x.Shape, columns, scale.Len())
	}
	op := Record[layerNormOp](t)
	op.x, op.d = x, device.LayerNorm{Rows: rows, Cols: columns, Epsilon: epsilon}
	op.scale, op.shift = scale.read(t, true), shift.read(t, true)
	op.factor, op.offset = t.wide(op.scale), t.wide(op.shift)
	op.y = t.normal(x.Shape, x, op.scale, op.shift)
	op.mean, op.invstd = t.Scratch(device.F32, rows), t.Scratch(device.F32, rows)
	if t.Pass.Training {
		op.dscale, op.dshift = t.Scratch(device.F32, columns), t.Scratch(device.F32, columns)
	}
	t.kernels.LayerNormForward(op.d, op.y.Value, op.mean, op.invstd, x.Value, op.factor, op.offset)
	return op.y
}

// compute runs the one kernel that gives all gradients, in whichever half of
// the backward pass comes first.
func (op *layerNormOp) compute(t *Tape) {
	if op.computed {
		return
	}
	op.computed = true
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.y.needs {
		return
	}
	op.reached = true
	d := op.d
	var dx device.Buf
	if op.x.NeedsGrad() {
		dx, d.Accumulate = t.gradOver(op.x, op.y)
	}
	t.kernels.LayerNormBackward(d, dx, op.dscale, op.dshift, dy, op.x.Value, op.mean, op.invstd, op.factor)
}

func (op *layerNormOp) BackwardInput(t *Tape) { op.compute(t) }

func (op *layerNormOp) BackwardWeight(t *Tape) {
	op.compute(t)
	if op.reached {
		t.give(op.shift, op.dshift)
		t.give(op.scale, op.dscale)
	}
}
