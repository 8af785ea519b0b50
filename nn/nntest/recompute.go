package nntest

import (
	"testing"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// CheckRecompute requires that a pass that makes the case again in its backward
// half gives the same bits, in either form, delivers every use once, emits
// statistics once, and neither reads freed memory nor takes more in further
// passes.
func CheckRecompute(tb testing.TB, dev device.Device, c Case) {
	tb.Helper()
	r := start(tb, dev, c)
	want := r.once(nn.NewTape(dev), true, whole)
	delivered := 0
	for _, p := range r.params {
		p.OnGrad(func(*nn.Param, int, int) { delivered++ })
	}
	r.once(nn.NewTape(dev), true, whole)
	once := delivered

	blocks := []nn.Block{model{c}}
	r.c.Apply = func(t *nn.Tape, in []*nn.Var) *nn.Var { return nn.Forward(t, blocks, in...)[0] }
	r.pass.Recompute = true
	counted := &countingDevice{Device: dev}
	t := nn.NewTape(counted)
	Poison(t)
	calls := 0
	for i, backward := range []func(*nn.Tape){whole, halves, whole, halves} {
		delivered = 0
		r.requireSame("recomputed", want, r.onceWithStatistics(t, backward))
		if delivered != once {
			tb.Errorf("recomputed: %d gradients delivered, want %d", delivered, once)
		}
		if i == 1 {
			calls = counted.calls
		}
	}
	if counted.calls != calls {
		tb.Errorf("a repeated pass with recomputation allocated %d buffers", counted.calls-calls)
	}
}

// onceWithStatistics is once, and requires that no layer emits twice.
func (r *run) onceWithStatistics(t *nn.Tape, backward func(t *nn.Tape)) result {
	r.tb.Helper()
	emitted := make([]int, len(r.states))
	count := func(sign int) {
		for i, s := range r.states {
			if s.Running != nil {
				emitted[i] += sign * (len(s.Running.Emitted()) + s.Running.Singles)
			}
		}
	}
	out := r.once(t, true, func(t *nn.Tape) {
		count(1)
		backward(t)
		count(-1)
	})
	for i, n := range emitted {
		if n != 0 {
			r.tb.Errorf("%s was emitted again", r.states[i].Name)
		}
	}
	return out
}
