package naive

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

func (kernels) SGD(u device.Update, w, grad, momentum device.Buf) {
	device.Require("SGD", "w", w, device.F32, w.Len)
	device.RequireSame("SGD", "grad", grad, w)
	if u.Momentum != 0 {
		device.RequireSame("SGD", "momentum", momentum, w)
	}
	weight := w.F32()
	keep := 1 - u.Dampening
	for i, g := range grad.F32() {
		g = float32(u.Scale*g) + float32(u.WeightDecay*weight[i])
		if u.Momentum != 0 {
			m := g
			if u.Step != 1 {
				m = float32(u.Momentum*momentum.F32()[i]) + float32(keep*g)
			}
			momentum.F32()[i] = m
			if u.Nesterov {
				g += float32(u.Momentum * m)
			} else {
				g = m
			}
		}
		weight[i] -= float32(u.LR * g)
	}
}

// Adam computes, with t = Step,
//
//	m = Beta1*m + (1-Beta1)*g        v = Beta2*v + (1-Beta2)*g*g
//	w -= LR/(1-Beta1^t) * m / (sqrt(v)/sqrt(1-Beta2^t) + Epsilon)
//
// The two corrections are float64, rounded once.
func (kernels) Adam(u device.Update, w, grad, m, v device.Buf) {
	device.Require("Adam", "w", w, device.F32, w.Len)
	device.RequireSame("Adam", "grad", grad, w)
	device.RequireSame("Adam", "m", m, w)
	device.RequireSame("Adam", "v", v, w)
	first := 1 - math.Pow(float64(u.Beta1), float64(u.Step))
	second := 1 - math.Pow(float64(u.Beta2), float64(u.Step))
	rate := float32(float64(u.LR) / first)
	root := float32(1 / math.Sqrt(second))
	decay, shrink := u.WeightDecay, float32(1)
	if u.Decoupled {
		decay, shrink = 0, float32(1-float64(float64(u.LR)*float64(u.WeightDecay)))
	}
	rest1, rest2 := 1-u.Beta1, 1-u.Beta2
	for i, g := range grad.F32() {
		weight := w.F32()[i]
		g = float32(u.Scale*g) + float32(decay*weight)
		mi := float32(u.Beta1*m.F32()[i]) + float32(rest1*g)
		vi := float32(u.Beta2*v.F32()[i]) + float32(float32(rest2*g)*g)
		m.F32()[i], v.F32()[i] = mi, vi
		below := float32(float32(math.Sqrt(float64(vi)))*root) + u.Epsilon
		w.F32()[i] = float32(weight*shrink) - float32(rate*float32(mi/below))
	}
}

func (kernels) SumSquares(out, x device.Buf) {
	device.Require("SumSquares", "x", x, device.F32, x.Len)
	device.Require("SumSquares", "out", out, device.F64, (x.Len+device.NormBlock-1)/device.NormBlock)
	for lo := 0; lo < x.Len; lo += device.NormBlock {
		var sum float64
		for _, v := range x.F32()[lo:min(lo+device.NormBlock, x.Len)] {
			sum += float64(float64(v) * float64(v))
		}
		out.F64()[lo/device.NormBlock] = sum
	}
}

func (kernels) AllFinite(x device.Buf) bool {
	device.Require("AllFinite", "x", x, device.F32, x.Len)
	for _, v := range x.F32() {
		if v-v != 0 {
			return false
		}
	}
	return true
}
