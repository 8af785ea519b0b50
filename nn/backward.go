package nn

import (
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
)

// SeedLoss sets the gradient of a loss's result: the derivative of the whole
// step's objective with respect to this micro-batch's summed loss, that is loss
// scale / number of samples in the step.
func (t *Tape) SeedLoss(loss *Var, seed float32) {
	if loss.score.sum.IsZero() {
		fail("", "backward", "the value of shape %s is no loss", loss.Shape)
	}
	loss.score.seed = seed
	loss.hasGrad = true
}

// SeedGrad sets the gradient of an output, as a pipeline stage receives it. g
// is copied, and dropped when no gradient flows into v.
func (t *Tape) SeedGrad(v *Var, g device.Buf) {
	if g.Len != v.Shape.Len() {
		fail("", "backward", "a gradient of %d elements for shape %s", g.Len, v.Shape)
	}
	t.pass(v, g)
}

// put stores or adds g as one contribution to v's gradient.
func (t *Tape) put(v *Var, g device.Buf) {
	buf, accumulate := t.GradOf(v)
	if accumulate {
		t.kernels.Add(buf, buf, g)
		return
	}
	t.copy(buf, g)
}

// pass is put for an input that may not need a gradient.
func (t *Tape) pass(v *Var, g device.Buf) {
	if v.NeedsGrad() {
		t.put(v, g)
	}
}

// give is pass for a use of a parameter, which it delivers.
func (t *Tape) give(v *Var, g device.Buf) {
	if v.NeedsGrad() {
		t.put(v, g)
		t.Deliver(v)
	}
}

// Backward runs both halves of every operation in reverse and frees each
// activation as soon as nothing needs it.
func (t *Tape) Backward() {
	t.reverse(func(i int) {
		t.ops[i].BackwardWeight(t)
		t.ops[i].BackwardInput(t)
		t.freeAfter(i)
	})
}

// BackwardInput runs the first half: afterwards the inputs' gradients are
// there. All memory is kept for BackwardWeight.
func (t *Tape) BackwardInput() {
	t.reverse(func(i int) { t.ops[i].BackwardInput(t) })
}

// BackwardWeight runs the second half and frees the activations.
func (t *Tape) BackwardWeight() {
	t.reverse(func(i int) {
		t.ops[i].BackwardWeight(t)
		t.freeAfter(i)
	})
}

// reverse runs f for each operation, last first, and records a span for each
// block.
func (t *Tape) reverse(f func(op int)) {
	end, start := t.count, t.Events.Now()
	for k := len(t.marks); k >= 0; k-- {
		first, block := 0, "input" // what precedes the first block
		if k > 0 {
			first, block = t.marks[k-1].first, t.marks[k-1].block
		}
		for i := end - 1; i >= first; i-- {
			f(i)
		}
		if end > first {
			start = t.span(observe.Backward, block, start)
		}
		end = first
	}
}

// span records what a block took since start and returns the present time.
func (t *Tape) span(kind observe.Kind, block string, start int64) int64 {
	now := t.Events.Now()
	t.Events.Record(observe.Span{Kind: kind, Lane: "compute", Name: block, Start: start, End: now, Step: t.Pass.Step + 1, Micro: t.Pass.Micro})
	return now
}

// OutGrad returns the gradient of an operation's output; false when nothing
// flowed into it, and then there is nothing to do.
func (t *Tape) OutGrad(y *Var) (device.Buf, bool) {
	y = y.root()
	return y.grad, y.hasGrad
}

// GradOf returns the memory for the gradient of v and whether it must be added
// to. Call it once for each contribution, directly before the kernel that
// writes it. For a use of a parameter it is the slot that the parameter's owner
// bound; Deliver must follow.
func (t *Tape) GradOf(v *Var) (buf device.Buf, accumulate bool) {
	v = v.root()
	if v.param != nil {
		return v.param.gradSlot(t, v.use)
	}
	if v.hasGrad {
		return v.grad, true
	}
	v.grad = t.arena.Get(v.gradType(), v.Shape.Len())
	v.hasGrad = true
	return v.grad, false
}

// partOf returns float32 memory for a contribution to the gradient dx: dx itself
// where it holds nothing yet and is of float32. Give it to addPart.
func (t *Tape) partOf(dx device.Buf, accumulate bool) device.Buf {
	if accumulate || dx.Type != device.F32 {
		return t.arena.Get(device.F32, dx.Len)
	}
	return dx
}

// addPart adds the contribution to dx, or stores it there, rounded once.
func (t *Tape) addPart(dx, part device.Buf, accumulate bool) {
	switch {
	case accumulate:
		t.kernels.Add(dx, dx, part)
	case dx.Type != device.F32:
		t.kernels.Cast(dx, part)
	default:
		return
	}
	t.arena.Put(part)
}

// gradOver is GradOf of x for an operation that needs the gradient of its
// output y no longer and whose kernel may write over it: y's memory becomes
// x's when both are as large, of one type, and nothing has flowed into x yet.
func (t *Tape) gradOver(x, y *Var) (buf device.Buf, accumulate bool) {
	x, y = x.root(), y.root()
	if x.hasGrad || x.param != nil || !y.hasGrad || x.Shape.Len() != y.Shape.Len() || x.gradType() != y.grad.Type {
		return t.GradOf(x)
	}
	x.grad, x.hasGrad = y.grad, true
	y.grad, y.hasGrad = device.Buf{}, false
	return x.grad, false
}

// Deliver says that the gradient of this use of a parameter is complete for
// this micro-batch, and runs the parameter's hooks.
func (t *Tape) Deliver(v *Var) {
	v.param.deliver(v.use, t.Pass.Micro)
}

// freeAfter takes back the memory of Vars and scratch that operation i made;
// those of later operations have been taken back already.
func (t *Tape) freeAfter(i int) {
	for t.used > 0 && t.vars[t.used-1].producer >= i {
		v := t.vars[t.used-1]
		if v.owned {
			t.arena.Put(v.Value)
		}
		if v.hasGrad && v.base == nil && v.param == nil {
			t.arena.Put(v.grad)
		}
		v.Value, v.grad = device.Buf{}, device.Buf{}
		v.owned, v.hasGrad = false, false
		t.used--
	}
	for n := len(t.scratch); n > 0 && t.scratch[n-1].producer >= i; n = len(t.scratch) {
		t.arena.Put(t.scratch[n-1].buf)
		t.scratch = t.scratch[:n-1]
	}
}
