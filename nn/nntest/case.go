package nntest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Case is a function of inputs and parameters under test. It is built anew for
// each check, so that its layers have no history.
type Case struct {
	Layers []nn.Layer // whose parameters and states Apply uses
	Blocks []nn.Block // likewise
	Inputs []nn.Shape
	// Apply computes the function on a tape.
	Apply func(t *nn.Tape, in []*nn.Var) *nn.Var
	// Fill sets the values of an input ("input0", padding left out) or a
	// parameter by its name; nil is Eighths.
	Fill func(name string, out []float32)
	// Random says that two uses in one pass differ: dropout.
	Random bool
	// Tolerance of CheckGrad, 0 for the default.
	Tolerance float64
}

// Eighths fills with multiples of 1/8 from -1 to 1: their products and sums are
// exact in float32, so that the differences of bilinear functions are, too.
func Eighths(name string, out []float32) {
	r := rand.New(rand.NewPCG(nn.HashString(1, name), 1))
	for i := range out {
		out[i] = float32(r.IntN(17)-8) / 8
	}
}

// Spaced fills with distinct values, none of them nearer to another than 1/4 or
// to zero than 1/8: a step of CheckGrad crosses no kink of a maximum or a ReLU.
func Spaced(name string, out []float32) {
	r := rand.New(rand.NewPCG(nn.HashString(2, name), 1))
	for i, k := range r.Perm(len(out)) {
		out[i] = (float32(k) - float32(len(out)/2) + 0.5) / 4
	}
}

// model is the case as a block, for its parameters and states.
type model struct{ Case }

func (m model) Name() string { return "case" }

func (m model) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var { return t.List(m.Apply(t, in)) }

func (m model) Params() []*nn.Param {
	out := nn.Params(m.Blocks)
	for _, l := range m.Layers {
		out = append(out, l.Params()...)
	}
	return out
}

func (m model) State() []nn.State {
	out := nn.States(m.Blocks)
	for _, l := range m.Layers {
		out = append(out, l.State()...)
	}
	return out
}

// run is a case with memory.
type run struct {
	tb     testing.TB
	dev    device.Device
	c      Case
	params []*nn.Param
	states []nn.State
	inputs []device.Buf
	pass   nn.Pass
}

func start(tb testing.TB, dev device.Device, c Case) *run {
	tb.Helper()
	r := &run{tb: tb, dev: dev, c: c, pass: nn.Pass{Training: true, Seed: 3, Step: 5, Micro: 7}}
	b := model{c}
	if err := nn.Materialize(dev, []nn.Block{b}, 1); err != nil {
		tb.Fatal(err)
	}
	r.params, r.states = b.Params(), b.State()
	fill := c.Fill
	if fill == nil {
		fill = Eighths
	}
	for _, p := range r.params {
		fill(p.Name, p.Value.F32())
	}
	for i, s := range c.Inputs {
		values := make([]float32, s.Rows()*s.Features())
		fill(fmt.Sprint("input", i), values)
		r.inputs = append(r.inputs, Pack(s, values))
	}
	return r
}

// forward runs the case and returns its inputs and output.
func (r *run) forward(t *nn.Tape, needsGrad bool) (in []*nn.Var, out *nn.Var) {
	t.Begin(r.pass)
	in = r.put(t, needsGrad)
	out = r.c.Apply(t, in)
	r.forget()
	return in, out
}

func (r *run) put(t *nn.Tape, needsGrad bool) (in []*nn.Var) {
	for i, s := range r.c.Inputs {
		in = append(in, t.Input(r.inputs[i], s, needsGrad))
	}
	return in
}

// forget drops what normalisations emitted.
func (r *run) forget() {
	for _, s := range r.states {
		s.Running.Update(nil)
	}
}

// seed sets the gradient of an output: 1/2 for a loss, else multiples of 1/8
// where there is no padding.
func (r *run) seed(t *nn.Tape, out *nn.Var) {
	if out.IsLoss() {
		t.SeedLoss(out, 0.5)
		return
	}
	t.SeedGrad(out, r.weights(out.Shape))
}

func (r *run) weights(s nn.Shape) device.Buf {
	w := make([]float32, s.Rows()*s.Features())
	Eighths("gradient", w)
	return Pack(s, w)
}

// objective is the scalar whose gradient seed starts.
func (r *run) objective(t *nn.Tape) float64 {
	_, out := r.forward(t, true)
	if out.IsLoss() {
		return out.Score().Sum() / 2
	}
	sum := 0.0
	w := r.weights(out.Shape).F32()
	for i, v := range out.Value.F32() {
		sum += float64(v) * float64(w[i])
	}
	return sum
}
