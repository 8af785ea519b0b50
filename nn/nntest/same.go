package nntest

import (
	"math"
	"testing"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Check runs every check of the package on the case that build returns.
func Check(tb testing.TB, dev device.Device, build func() Case) {
	tb.Helper()
	CheckGrad(tb, dev, build())
	CheckSplit(tb, dev, build())
	CheckReuse(tb, dev, build())
	CheckFrozen(tb, dev, build())
	CheckTwice(tb, dev, build())
	CheckRecompute(tb, dev, build())
}

// result is everything that a pass gives: output, gradients of inputs, and of
// parameters, as bits.
type result struct {
	names  []string
	values [][]float32
}

func (r *result) add(name string, v []float32) {
	r.names = append(r.names, name)
	r.values = append(r.values, append([]float32(nil), v...))
}

func (r *run) once(t *nn.Tape, needsGrad bool, backward func(t *nn.Tape)) result {
	for _, p := range r.params {
		p.ZeroGrad()
	}
	var out result
	in, y := r.forward(t, needsGrad)
	if y.IsLoss() {
		out.add("loss", []float32{float32(y.Score().Sum())})
	} else {
		out.add("output", y.Value.F32())
	}
	r.seed(t, y)
	backward(t)
	for i := range in {
		out.add("gradient of an input", in[i].Grad().F32())
	}
	for _, p := range r.params {
		out.add("gradient of "+p.Name, gradOf(p))
	}
	return out
}

func (r *run) requireSame(what string, want, got result) {
	r.tb.Helper()
	for i, name := range want.names {
		for k, w := range want.values[i] {
			if g := got.values[i][k]; math.Float32bits(g) != math.Float32bits(w) {
				r.tb.Errorf("%s: element %d of the %s is %g, was %g", what, k, name, g, w)
				return
			}
		}
	}
}

func whole(t *nn.Tape) { t.Backward() }

func halves(t *nn.Tape) {
	t.BackwardInput()
	t.BackwardWeight()
}

// CheckSplit requires that the two halves of the backward pass, run one after
// the other, give the bits of the whole.
func CheckSplit(tb testing.TB, dev device.Device, c Case) {
	tb.Helper()
	r := start(tb, dev, c)
	want := r.once(nn.NewTape(dev), true, whole)
	r.requireSame("halves", want, r.once(nn.NewTape(dev), true, halves))
}

// CheckReuse requires that further passes on one tape give the same bits and
// take no more memory, while all memory that the tape gave back is NaN: nothing
// reads freed memory or memory it has not written.
func CheckReuse(tb testing.TB, dev device.Device, c Case) {
	tb.Helper()
	r := start(tb, dev, c)
	want := r.once(nn.NewTape(dev), true, whole)
	counted := &countingDevice{Device: dev}
	t := nn.NewTape(counted)
	Poison(t)
	r.requireSame("poisoned memory", want, r.once(t, true, whole))
	r.requireSame("poisoned memory, again", want, r.once(t, true, whole))
	r.requireSame("poisoned memory, halves", want, r.once(t, true, halves))
	before := counted.calls
	r.requireSame("poisoned memory, at last", want, r.once(t, true, whole))
	r.once(t, true, halves)
	if counted.calls != before {
		tb.Errorf("a repeated pass allocated %d buffers", counted.calls-before)
	}
}

type countingDevice struct {
	device.Device
	calls int
}

func (d *countingDevice) Alloc(t device.Type, n int) (device.Buf, error) {
	d.calls++
	return d.Device.Alloc(t, n)
}

func (d *countingDevice) Region(least int) (device.Buf, error) {
	d.calls++
	return d.Device.Region(least)
}

// Poison makes a tape overwrite what it gives back: NaN, or an index that is
// outside of everything.
func Poison(t *nn.Tape) {
	t.Arena().Freed = func(b device.Buf) {
		switch b.Type {
		case device.F32:
			fill(b.F32(), float32(math.NaN()))
		case device.F64:
			fill(b.F64(), math.NaN())
		case device.I32:
			fill(b.I32(), math.MaxInt32)
		}
	}
}

func fill[T any](s []T, v T) {
	for i := range s {
		s[i] = v
	}
}

// CheckFrozen requires that frozen parameters get no gradient and fire no hook
// while the inputs' gradients keep their bits, and that inputs which ask for no
// gradient change nothing in the parameters'.
func CheckFrozen(tb testing.TB, dev device.Device, c Case) {
	tb.Helper()
	r := start(tb, dev, c)
	want := r.once(nn.NewTape(dev), true, whole)
	alone := r.once(nn.NewTape(dev), false, whole)
	for i := range r.c.Inputs {
		if len(alone.values[1+i]) != 0 {
			tb.Errorf("input %d has a gradient without asking for one", i)
		}
		alone.values[1+i] = want.values[1+i]
	}
	r.requireSame("inputs without gradient", want, alone)
	for _, p := range r.params {
		p.Frozen = true
		p.OnGrad(func(p *nn.Param, _, _ int) { tb.Errorf("%s is frozen and was delivered", p.Name) })
	}
	frozen := r.once(nn.NewTape(dev), true, halves)
	for _, p := range r.params {
		if _, ok := p.Grad(0); ok {
			tb.Errorf("%s is frozen and has a gradient", p.Name)
		}
	}
	n := 1 + len(r.c.Inputs)
	r.requireSame("frozen parameters", result{want.names[:n], want.values[:n]}, frozen)
	r.once(nn.NewTape(dev), false, whole)
}

// CheckTwice applies the case twice in one pass: the uses of a parameter by each
// have gradients of their own, equal to those of a single application, and those
// of the inputs add up.
func CheckTwice(tb testing.TB, dev device.Device, c Case) {
	tb.Helper()
	if c.Random {
		return
	}
	r := start(tb, dev, c)
	want := r.once(nn.NewTape(dev), true, whole)
	uses := make([]int, len(r.params)) // of one application
	for i, p := range r.params {
		uses[i] = p.Uses()
		p.ZeroGrad()
	}
	t := nn.NewTape(dev)
	t.Begin(r.pass)
	in := r.put(t, true)
	first, second := c.Apply(t, in), c.Apply(t, in)
	r.forget()
	r.seed(t, first)
	r.seed(t, second)
	t.Backward()
	for i, v := range in {
		twice(r, "an input", want.values[1+i], v.Grad().F32(), 2)
	}
	for i, p := range r.params {
		for application := range 2 {
			first := application * uses[i]
			twice(r, p.Name, want.values[1+len(in)+i], sumOfUses(p, first, first+uses[i]), 1)
		}
	}
}

// twice allows the rounding of one addition: kernels may add in float64.
func twice(r *run, what string, want, got []float32, factor float64) {
	r.tb.Helper()
	if len(want) != len(got) {
		r.tb.Errorf("used twice: the gradient of %s has %d elements, want %d", what, len(got), len(want))
		return
	}
	largest := 0.0
	for _, w := range want {
		largest = max(largest, math.Abs(float64(w)))
	}
	for k, w := range want {
		if d := math.Abs(float64(got[k]) - factor*float64(w)); !(d <= largest*0x1p-21) {
			r.tb.Errorf("used twice: element %d of the gradient of %s is %g, want %g", k, what, got[k], factor*float64(w))
			return
		}
	}
}
