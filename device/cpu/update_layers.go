package cpu

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// layerKernels are the updates of RMSProp, AdaGrad and LAMB. momentum is nil for
// none; squares has one element for each block of device.NormBlock.
type layerKernels struct {
	rmsProp     func(w, grad, square, momentum []float32, p *rmsNumbers)
	adaGrad     func(w, grad, sum []float32, p *rmsNumbers)
	lambMoments func(squares []float64, w, grad, m, v []float32, p *adamNumbers)
	lambStep    func(w, m, v []float32, p *adamNumbers)
}

func portableLayers() layerKernels {
	return layerKernels{rmsProp: portableRMSProp, adaGrad: portableAdaGrad, lambMoments: portableLAMBMoments, lambStep: portableLAMBStep}
}

// rmsNumbers are the constants of RMSProp and AdaGrad steps. The assembly reads
// them by position.
type rmsNumbers struct {
	scale, decay, keep, rest, epsilon, momentum, rate float32
}

func (k *kernels) RMSProp(u device.Update, w, grad, square, momentum device.Buf) {
	requireUpdate("RMSProp", w, "grad", grad)
	device.RequireSame("RMSProp", "square", square, w)
	if u.Momentum != 0 {
		device.RequireSame("RMSProp", "momentum", momentum, w)
	} else {
		momentum = device.Buf{}
	}
	k.runElements(elementsTask{op: opRMSProp, n: w.Len, dst: w, a: grad, b: square, c: momentum, rms: rmsNumbers{
		scale: u.Scale, decay: u.WeightDecay, keep: u.Beta2, rest: 1 - u.Beta2, epsilon: u.Epsilon, momentum: u.Momentum, rate: u.LR,
	}})
}

func (k *kernels) AdaGrad(u device.Update, w, grad, sum device.Buf) {
	requireUpdate("AdaGrad", w, "grad", grad)
	device.RequireSame("AdaGrad", "sum", sum, w)
	k.runElements(elementsTask{op: opAdaGrad, n: w.Len, dst: w, a: grad, b: sum, rms: rmsNumbers{
		scale: u.Scale, decay: u.WeightDecay, epsilon: u.Epsilon, rate: u.LR,
	}})
}

func (k *kernels) LAMBMoments(u device.Update, squares, w, grad, m, v device.Buf) {
	requireUpdate("LAMBMoments", w, "grad", grad)
	device.RequireSame("LAMBMoments", "m", m, w)
	device.RequireSame("LAMBMoments", "v", v, w)
	device.Require("LAMBMoments", "squares", squares, device.F64, (w.Len+device.NormBlock-1)/device.NormBlock)
	k.runElements(elementsTask{op: opLAMBMoments, n: w.Len, dst: w, a: grad, b: m, c: v, squares: squares, adam: lambNumbers(u)})
}

func (k *kernels) LAMBStep(u device.Update, w, m, v device.Buf) {
	requireUpdate("LAMBStep", w, "m", m)
	device.RequireSame("LAMBStep", "v", v, w)
	k.runElements(elementsTask{op: opLAMBStep, n: w.Len, dst: w, b: m, c: v, adam: lambNumbers(u)})
}

// lambNumbers has in shrink what corrects the first moment.
func lambNumbers(u device.Update) adamNumbers {
	first := 1 - math.Pow(float64(u.Beta1), float64(u.Step))
	second := 1 - math.Pow(float64(u.Beta2), float64(u.Step))
	return adamNumbers{
		scale: u.Scale, decay: u.WeightDecay, shrink: float32(1 / first),
		beta1: u.Beta1, rest1: 1 - u.Beta1, beta2: u.Beta2, rest2: 1 - u.Beta2,
		root: float32(1 / math.Sqrt(second)), epsilon: u.Epsilon, rate: u.LR,
	}
}

// layerUpdate runs one of layerKernels; lo starts a block.
func (t *elementsTask) layerUpdate(lo, hi int) {
	w, b := t.dst.F32()[lo:hi], t.b.F32()[lo:hi]
	switch t.op {
	case opRMSProp:
		var momentum []float32
		if !t.c.IsZero() {
			momentum = t.c.F32()[lo:hi]
		}
		t.set.rmsProp(w, t.a.F32()[lo:hi], b, momentum, &t.rms)
	case opAdaGrad:
		t.set.adaGrad(w, t.a.F32()[lo:hi], b, &t.rms)
	case opLAMBMoments:
		t.set.lambMoments(t.squares.F64()[lo/device.NormBlock:], w, t.a.F32()[lo:hi], b, t.c.F32()[lo:hi], &t.adam)
	case opLAMBStep:
		t.set.lambStep(w, b, t.c.F32()[lo:hi], &t.adam)
	}
}

func portableRMSProp(w, grad, square, momentum []float32, p *rmsNumbers) {
	for i, g := range grad {
		g = float32(p.scale*g) + float32(p.decay*w[i])
		s := float32(p.keep*square[i]) + float32(float32(p.rest*g)*g)
		square[i] = s
		g /= float32(math.Sqrt(float64(s))) + p.epsilon
		if momentum != nil {
			g += float32(p.momentum * momentum[i])
			momentum[i] = g
		}
		w[i] -= float32(p.rate * g)
	}
}

func portableAdaGrad(w, grad, sum []float32, p *rmsNumbers) {
	for i, g := range grad {
		g = float32(p.scale*g) + float32(p.decay*w[i])
		s := sum[i] + float32(g*g)
		sum[i] = s
		w[i] -= float32(p.rate * float32(g/(float32(math.Sqrt(float64(s)))+p.epsilon)))
	}
}

func portableLAMBMoments(squares []float64, w, grad, m, v []float32, p *adamNumbers) {
	for lo := 0; lo < len(w); lo += device.NormBlock {
		hi := min(lo+device.NormBlock, len(w))
		squares[lo/device.NormBlock] = addLAMBMoments(0, w[lo:hi], grad[lo:hi], m[lo:hi], v[lo:hi], p)
	}
}

// addLAMBMoments adds the squares of directions to sum.
func addLAMBMoments(sum float64, w, grad, m, v []float32, p *adamNumbers) float64 {
	for i, g := range grad {
		g = float32(p.scale * g)
		mi := float32(p.beta1*m[i]) + float32(p.rest1*g)
		vi := float32(p.beta2*v[i]) + float32(float32(p.rest2*g)*g)
		m[i], v[i] = mi, vi
		d := float64(lambDirection(w[i], mi, vi, p))
		sum += float64(d * d)
	}
	return sum
}

func portableLAMBStep(w, m, v []float32, p *adamNumbers) {
	for i, x := range w {
		w[i] = x - float32(p.rate*lambDirection(x, m[i], v[i], p))
	}
}

func lambDirection(w, m, v float32, p *adamNumbers) float32 {
	below := float32(float32(math.Sqrt(float64(v)))*p.root) + p.epsilon
	return float32(float32(p.shrink*m)/below) + float32(p.decay*w)
}
