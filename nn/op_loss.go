package nn

import "github.com/gradfusion/gradfusion/device"

// CrossEntropyConfig says how CrossEntropy counts.
type CrossEntropyConfig struct {
	Smoothing float32 // share of the target that is spread evenly over all classes
	Ignore    int32   // label of rows that count for nothing; used when HasIgnore
	HasIgnore bool
}

type crossEntropyOp struct {
	x, y          *Var
	probs, labels device.Buf
	d             device.CrossEntropy
}

// CrossEntropy returns the loss of rows of logits, or sequences x tokens x
// classes, against labels (I32, one a row): the SUM over counted rows of the
// cross-entropy between softmax and target. labels stays the caller's and must
// not change until the backward pass is over. A label that names no class panics
// with *device.LabelError, which Catch returns. Of logits that a ColumnLinear
// made, which have this partner's classes only, it is the loss of the whole.
func (t *Tape) CrossEntropy(logits *Var, labels device.Buf, c CrossEntropyConfig) *Var {
	s := logits.Shape
	if !s.isRows() {
		fail("", "cross-entropy", "logits of shape %s, want rows x classes", s)
	}
	rows, classes := s.matrix()
	d := device.CrossEntropy{Rows: rows, Classes: classes, Smoothing: c.Smoothing, Ignore: c.Ignore, HasIgnore: c.HasIgnore}
	if labels.Len != d.Rows || labels.Type != device.I32 {
		fail("", "cross-entropy", "%d labels of %s for logits of shape %s, want one i32 a row", labels.Len, labels.Type, s)
	}
	if !(c.Smoothing >= 0 && c.Smoothing < 1) {
		fail("", "cross-entropy", "label smoothing %g is outside of [0, 1)", c.Smoothing)
	}
	if whole := logits.root(); whole.partners != nil {
		return t.cutCrossEntropy(whole.partners, whole.part, logits, labels, d)
	}
	op := Record[crossEntropyOp](t)
	op.x, op.labels, op.d = logits, labels, d
	op.y = t.loss(logits)
	op.y.score.correct = t.Keep(device.I32, 1)
	op.y.score.Count = counted(d, labels.I32())
	op.probs = t.Scratch(device.F32, d.Rows*d.Classes)
	t.kernels.CrossEntropyForward(d, op.y.score.sum, op.y.score.correct, op.probs, logits.Value, labels)
	return op.y
}

func counted(d device.CrossEntropy, labels []int32) int {
	if !d.HasIgnore {
		return d.Rows
	}
	n := 0
	for _, l := range labels {
		if l != d.Ignore {
			n++
		}
	}
	return n
}

// loss makes the result of a loss operation.
func (t *Tape) loss(x *Var) *Var {
	y := t.newVar()
	y.Shape, y.needs = Plain(1), x.NeedsGrad()
	y.score = Score{sum: t.Keep(device.F64, 1), scale: 1}
	return y
}

func (op *crossEntropyOp) BackwardInput(t *Tape) {
	if _, ok := t.OutGrad(op.y); !ok || !op.x.NeedsGrad() {
		return
	}
	dx, accumulate := t.GradOf(op.x)
	part := dx
	if accumulate {
		part = t.arena.Get(device.F32, dx.Len)
	}
	t.kernels.CrossEntropyBackward(op.d, part, op.probs, op.labels, op.y.score.seed)
	if accumulate {
		t.kernels.Add(dx, dx, part)
		t.arena.Put(part)
	}
}

func (op *crossEntropyOp) BackwardWeight(*Tape) {}

type squaredErrorOp struct {
	x, y   *Var
	target device.Buf
}

// MeanSquaredError returns the loss of x against target, a buffer shaped like
// x: the SUM over rows of the mean over features of the squared difference.
// target stays the caller's and must not change until the backward pass is over.
func (t *Tape) MeanSquaredError(x *Var, target device.Buf) *Var {
	if x.Shape.Layout != device.Plain {
		fail("", "mean squared error", "input of shape %s: flatten it first", x.Shape)
	}
	if x.root().partners != nil {
		fail("", "mean squared error", "the features of the input are cut over partners, and this loss takes whole ones")
	}
	if target.Len != x.Shape.Len() || target.Type != device.F32 {
		fail("", "mean squared error", "target of %d x %s for an input of shape %s", target.Len, target.Type, x.Shape)
	}
	op := Record[squaredErrorOp](t)
	op.x, op.target, op.y = x, target, t.loss(x)
	op.y.score.Count = x.Shape.Rows()
	op.y.score.scale = 1 / float64(max(1, x.Shape.Features()))
	t.kernels.SquaredErrorForward(op.y.score.sum, x.Value, target)
	return op.y
}

func (op *squaredErrorOp) BackwardInput(t *Tape) {
	if _, ok := t.OutGrad(op.y); !ok || !op.x.NeedsGrad() {
		return
	}
	dx, accumulate := t.GradOf(op.x)
	part := dx
	if accumulate {
		part = t.arena.Get(device.F32, dx.Len)
	}
	seed := float32(float64(op.y.score.seed) * op.y.score.scale)
	t.kernels.SquaredErrorBackward(part, op.x.Value, op.target, seed)
	if accumulate {
		t.kernels.Add(dx, dx, part)
		t.arena.Put(part)
	}
}

func (op *squaredErrorOp) BackwardWeight(*Tape) {}
