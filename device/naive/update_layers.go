package naive

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

func (kernels) RMSProp(u device.Update, w, grad, square, momentum device.Buf) {
	device.Require("RMSProp", "w", w, device.F32, w.Len)
	device.RequireSame("RMSProp", "grad", grad, w)
	device.RequireSame("RMSProp", "square", square, w)
	if u.Momentum != 0 {
		device.RequireSame("RMSProp", "momentum", momentum, w)
	}
	rest := 1 - u.Beta2
	for i, g := range grad.F32() {
		g = float32(u.Scale*g) + float32(u.WeightDecay*w.F32()[i])
		s := float32(u.Beta2*square.F32()[i]) + float32(float32(rest*g)*g)
		square.F32()[i] = s
		g /= float32(math.Sqrt(float64(s))) + u.Epsilon
		if u.Momentum != 0 {
			g += float32(u.Momentum * momentum.F32()[i])
			momentum.F32()[i] = g
		}
		w.F32()[i] -= float32(u.LR * g)
	}
}

func (kernels) AdaGrad(u device.Update, w, grad, sum device.Buf) {
	device.Require("AdaGrad", "w", w, device.F32, w.Len)
	device.RequireSame("AdaGrad", "grad", grad, w)
	device.RequireSame("AdaGrad", "sum", sum, w)
	for i, g := range grad.F32() {
		g = float32(u.Scale*g) + float32(u.WeightDecay*w.F32()[i])
		s := sum.F32()[i] + float32(g*g)
		sum.F32()[i] = s
		w.F32()[i] -= float32(u.LR * float32(g/(float32(math.Sqrt(float64(s)))+u.Epsilon)))
	}
}

// The two corrections of LAMB are float64, rounded once.
func lambCorrections(u device.Update) (first, root float32) {
	first = float32(1 / (1 - math.Pow(float64(u.Beta1), float64(u.Step))))
	root = float32(1 / math.Sqrt(1-math.Pow(float64(u.Beta2), float64(u.Step))))
	return first, root
}

func (kernels) LAMBMoments(u device.Update, squares, w, grad, m, v device.Buf) {
	device.Require("LAMBMoments", "w", w, device.F32, w.Len)
	device.RequireSame("LAMBMoments", "grad", grad, w)
	device.RequireSame("LAMBMoments", "m", m, w)
	device.RequireSame("LAMBMoments", "v", v, w)
	device.Require("LAMBMoments", "squares", squares, device.F64, (w.Len+device.NormBlock-1)/device.NormBlock)
	first, root := lambCorrections(u)
	rest1, rest2 := 1-u.Beta1, 1-u.Beta2
	for i, g := range grad.F32() {
		g *= u.Scale
		mi := float32(u.Beta1*m.F32()[i]) + float32(rest1*g)
		vi := float32(u.Beta2*v.F32()[i]) + float32(float32(rest2*g)*g)
		m.F32()[i], v.F32()[i] = mi, vi
		d := float64(lambDirection(u, first, root, w.F32()[i], mi, vi))
		if i%device.NormBlock == 0 {
			squares.F64()[i/device.NormBlock] = 0
		}
		squares.F64()[i/device.NormBlock] += float64(d * d)
	}
}

func lambDirection(u device.Update, first, root, w, m, v float32) float32 {
	below := float32(float32(math.Sqrt(float64(v)))*root) + u.Epsilon
	return float32(float32(first*m)/below) + float32(u.WeightDecay*w)
}

func (kernels) LAMBStep(u device.Update, w, m, v device.Buf) {
	device.Require("LAMBStep", "w", w, device.F32, w.Len)
	device.RequireSame("LAMBStep", "m", m, w)
	device.RequireSame("LAMBStep", "v", v, w)
	first, root := lambCorrections(u)
	for i, x := range w.F32() {
		w.F32()[i] = x - float32(u.LR*lambDirection(u, first, root, x, m.F32()[i], v.F32()[i]))
	}
}
