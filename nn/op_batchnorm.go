package nn

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

type batchNormOp struct {
	x, residual, y              *Var
	scale, shift                *Var
	factor, offset              device.Buf // scale and shift as they are read
	mean, invstd                device.Buf
	dscale, dshift              device.Buf
	d                           device.BatchNorm
	constant                    bool // mean and invstd do not depend on x
	computed, hasParamGradients bool
	across                      Across
	layer                       string
	total                       int // values of a channel that share the statistics
}

// Norm is what BatchNorm needs besides its input. Scale, Shift and Running have
// one element per channel.
type Norm struct {
	Scale, Shift *Param
	Running      *Running
	Epsilon      float32
}

// BatchNorm returns act(scale (x - mean) / sqrt(variance + epsilon) + shift +
// residual) for each channel of images (Blocked16) or each column of a matrix;
// residual is shaped like x or nil, act is Identity or ReLU.
//
// A training pass normalises by the moments of its own micro-batch, with the
// biased variance, and emits them to n.Running, which it leaves as it is. An
// evaluation pass uses the running statistics. So does a training pass that has
// one value per channel; it emits nothing and is counted in Running.Singles. Of
// a layer that one pass uses several times the last use counts. With
// Running.Across the moments are those of all micro-batches that share them.
// Ioffe and Szegedy 2015.
func (t *Tape) BatchNorm(x *Var, n Norm, residual *Var, act device.Activation) *Var {
	return t.batchNorm(x, n, residual, act, false)
}

// batchNorm writes over residual when nobody reads that afterwards: neither who
// made it, in the backward pass, nor anybody else.
func (t *Tape) batchNorm(x *Var, n Norm, residual *Var, act device.Activation, over bool) *Var {
	d := n.describe(x, residual, act)
	op := Record[batchNormOp](t)
	op.x, op.residual, op.d = x, residual, d
	op.scale, op.shift = n.Scale.read(t, true), n.Shift.read(t, true)
	op.factor, op.offset = t.wide(op.scale), t.wide(op.shift)
	op.y = op.output(t, over)
	op.mean, op.invstd = t.Scratch(device.F32, d.C), t.Scratch(device.F32, d.C)
	if t.Pass.Training {
		op.dscale, op.dshift = t.Scratch(device.F32, d.C), t.Scratch(device.F32, d.C)
	}
	op.constant = op.statistics(t, n)
	op.forward(t, op.y.Value)
	return op.y
}

// output makes y, of the memory of the residual where that is allowed.
func (op *batchNormOp) output(t *Tape, over bool) *Var {
	r := op.residual
	if over && t.overwritten(r) {
		y := t.newVar()
		y.Shape, y.Value, y.owned = r.Shape, r.Value, true
		y.needs = op.x.NeedsGrad() || r.NeedsGrad() || op.scale.NeedsGrad() || op.shift.NeedsGrad()
		r.owned = false
		return y
	}
	return t.normal(op.x.Shape, op.x, r, op.scale, op.shift)
}

// forward computes y.
func (op *batchNormOp) forward(t *Tape, y device.Buf) {
	var added device.Buf
	if op.residual != nil {
		added = op.residual.Value
	}
	t.kernels.BatchNormForward(op.d, y, op.x.Value, op.mean, op.invstd, op.factor, op.offset, added)
}

func (n Norm) describe(x, residual *Var, act device.Activation) device.BatchNorm {
	layer := layerOf(n.Scale)
	d := device.BatchNorm{N: x.Shape.Dims[0], C: x.Shape.Dims[1], H: 1, W: 1, Layout: x.Shape.Layout, Activation: act}
	switch {
	case x.Shape.Rank == 4 && d.Layout == device.Blocked16:
		d.H, d.W = x.Shape.Dims[2], x.Shape.Dims[3]
	case x.Shape.Rank == 2 && d.Layout == device.Plain:
	default:
		fail(layer, "batch norm", "input of shape %s, want images in the %s layout or a matrix", x.Shape, device.Blocked16)
	}
	if c := n.Scale.Len(); c != d.C || n.Shift.Len() != c || n.Running.Channels != c {
		fail(layer, "batch norm", "input of shape %s has %d channels, the layer has %d", x.Shape, d.C, c)
	}
	if residual != nil && residual.Shape != x.Shape {
		fail(layer, "batch norm", "residual of shape %s, want the input's %s", residual.Shape, x.Shape)
	}
	if act != device.Identity && act != device.ReLU {
		fail(layer, "batch norm", "activation %d is neither identity nor ReLU", act)
	}
	return d
}

// statistics fills mean and invstd and reports whether they are constants.
func (op *batchNormOp) statistics(t *Tape, n Norm) (constant bool) {
	if t.Pass.Training && op.moments(t, n) {
		return false
	}
	if t.Pass.Training && !t.repeats() {
		n.Running.Singles++
	}
	mean, invstd, variance := op.mean.F32(), op.invstd.F32(), n.Running.Var.F32()
	copy(mean, n.Running.Mean.F32())
	for c := range invstd {
		invstd[c] = float32(1 / math.Sqrt(float64(variance[c])+float64(n.Epsilon)))
	}
	return true
}

// moments fills mean and invstd from the micro-batch, and from those that share
// its statistics, unless there is no more than one value per channel. It emits
// the micro-batch's own part.
func (op *batchNormOp) moments(t *Tape, n Norm) bool {
	count := op.d.N * op.d.H * op.d.W
	op.across, op.layer, op.total = n.Running.Across, n.Running.Name, count
	if count == 1 && op.across == nil {
		return false
	}
	m64, s64 := t.arena.Get(device.F64, op.d.C), t.arena.Get(device.F64, op.d.C)
	t.kernels.Moments(op.d, m64, s64, op.x.Value)
	if !t.repeats() {
		n.Running.emit(t.Pass.Micro, count, m64.F64(), s64.F64())
	}
	if op.across != nil {
		total, err := op.across.Moments(op.layer, count, m64.F64(), s64.F64())
		if err != nil {
			panic(&UseError{Param: op.layer, Err: err})
		}
		op.total = total
	}
	for c, m := range m64.F64() {
		op.mean.F32()[c] = float32(m)
		op.invstd.F32()[c] = float32(1 / math.Sqrt(s64.F64()[c]/float64(op.total)+float64(n.Epsilon)))
	}
	t.arena.Put(s64)
	t.arena.Put(m64)
	return op.total > 1
}

// compute runs the one kernel that gives all gradients, in whichever half of
// the backward pass comes first.
func (op *batchNormOp) compute(t *Tape) {
	if op.computed {
		return
	}
	op.computed = true
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.y.needs {
		return
	}
	op.hasParamGradients = true
	d := op.d
	var dx, dresidual device.Buf
	ownX, addResidual := !op.x.NeedsGrad(), false
	if ownX {
		dx = t.arena.Get(device.F32, op.x.Shape.Len()) // the kernel has no form without dx
	} else {
		dx, d.Accumulate = t.gradOver(op.x, op.y)
	}
	if op.residual.NeedsGrad() {
		dresidual, addResidual = t.GradOf(op.residual)
	}
	sum := dresidual
	if addResidual {
		dresidual = t.arena.Get(device.F32, op.residual.Shape.Len())
	}
	y, again := op.y.Value, op.y.Value.IsZero() && d.Activation != device.Identity
	if again {
		y = t.arena.Get(y.Type, op.y.Shape.Len())
		op.forward(t, y)
	}
	t.kernels.BatchNormBackward(d, dx, dresidual, op.dscale, op.dshift, dy,
		op.x.Value, y, op.mean, op.invstd, op.factor, op.constant || op.across != nil)
	if again {
		t.arena.Put(y)
	}
	if op.across != nil && !op.constant {
		op.centre(t, dx, op.factor)
	}
	if addResidual {
		t.kernels.Add(sum, sum, dresidual)
		t.arena.Put(dresidual)
	}
	if ownX {
		t.arena.Put(dx)
	}
}

func (op *batchNormOp) BackwardInput(t *Tape) { op.compute(t) }

func (op *batchNormOp) BackwardWeight(t *Tape) {
	op.compute(t)
	if op.hasParamGradients {
		t.give(op.shift, op.dshift)
		t.give(op.scale, op.dscale)
	}
	op.factor, op.offset = device.Buf{}, device.Buf{} // which may be the parameters' memory, and this record stays
}
