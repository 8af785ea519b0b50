package nntest

import (
	"fmt"
	"math"
	"testing"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// step is the distance of the central differences; the values differ by up to
// twice as much.
const step = 1.0 / 32

// tolerance bounds rms(gradient - difference) / rms(difference). The formula's
// truncation is step^4/30 times the fifth derivative, some 1e-6; the rounding
// of float32 outputs gives 2^-24/step = 2e-6 for each; normalisation, which
// divides differences, loses another digit.
const tolerance = 1e-4

// CheckGrad compares the gradients of every input and parameter of a case with
// central differences of fourth order, element by element.
func CheckGrad(tb testing.TB, dev device.Device, c Case) {
	tb.Helper()
	r := start(tb, dev, c)
	t := nn.NewTape(dev)
	in, out := r.forward(t, true)
	r.requireCleanPadding("output", out.Shape, out.Value)
	r.seed(t, out)
	t.Backward()
	var grads [][]float32
	for i, v := range in {
		g := v.Grad()
		if g.IsZero() {
			g = device.FromF32(make([]float32, v.Shape.Len()))
		}
		r.requireCleanPadding(fmt.Sprintf("gradient of input %d", i), v.Shape, g)
		grads = append(grads, Unpack(v.Shape, g))
	}
	for _, p := range r.params {
		grads = append(grads, gradOf(p))
	}
	for i, s := range c.Inputs {
		r.compare(fmt.Sprintf("input %d", i), grads[i], func(k int) *float32 { return &r.inputs[i].F32()[Offset(s, k)] })
	}
	for i, p := range r.params {
		r.compare(p.Name, grads[len(in)+i], func(k int) *float32 { return &p.Value.F32()[k] })
	}
}

// gradOf sums the gradients of a parameter's uses.
func gradOf(p *nn.Param) []float32 { return sumOfUses(p, 0, p.Uses()) }

func sumOfUses(p *nn.Param, lo, hi int) []float32 {
	out := make([]float32, p.Len())
	for use := lo; use < hi; use++ {
		if g, ok := p.Grad(use); ok {
			for i, v := range g.F32() {
				out[i] += v
			}
		}
	}
	return out
}

func (r *run) requireCleanPadding(what string, s nn.Shape, b device.Buf) {
	r.tb.Helper()
	if s.Layout != device.Blocked16 {
		return
	}
	inside := make([]bool, s.Len())
	for i := range s.Rows() * s.Features() {
		inside[Offset(s, i)] = true
	}
	for i, v := range b.F32() {
		if !inside[i] && v != 0 {
			r.tb.Errorf("%s of shape %s: padding element %d is %g", what, s, i, v)
			return
		}
	}
}

func (r *run) compare(what string, grad []float32, element func(int) *float32) {
	r.tb.Helper()
	bound := r.c.Tolerance
	if bound == 0 {
		bound = tolerance
	}
	t := nn.NewTape(r.dev)
	var errors, total float64
	for k, g := range grad {
		x := element(k)
		old := *x
		at := func(d float32) float64 {
			*x = old + d
			return r.objective(t)
		}
		want := (8*(at(step)-at(-step)) - (at(2*step) - at(-2*step))) / (12 * step)
		*x = old
		errors += (float64(g) - want) * (float64(g) - want)
		total += want * want
	}
	if !(math.Sqrt(errors) <= bound*math.Sqrt(total)) {
		r.tb.Errorf("gradient of %s: rms error %.3g of rms %.3g, above %.0e of it",
			what, math.Sqrt(errors/float64(len(grad))), math.Sqrt(total/float64(len(grad))), bound)
	}
}
