package cpu

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// requireUpdate checks that w is float32, which masters are in any case, and that
// another tensor is so and as long.
func requireUpdate(kernel string, w device.Buf, name string, other device.Buf) {
	device.Require(kernel, "w", w, device.F32, w.Len)
	device.RequireSame(kernel, name, other, w)
}

func (k *kernels) SGD(u device.Update, w, grad, momentum device.Buf) {
	requireUpdate("SGD", w, "grad", grad)
	if u.Momentum != 0 {
		device.RequireSame("SGD", "momentum", momentum, w)
	} else {
		momentum = device.Buf{}
	}
	k.runElements(elementsTask{op: opSGD, n: w.Len, dst: w, a: grad, b: momentum, first: u.Step == 1, sgd: sgdNumbers{
		scale: u.Scale, decay: u.WeightDecay, rate: u.LR,
		momentum: u.Momentum, keep: 1 - u.Dampening, nesterov: u.Nesterov,
	}})
}

func (k *kernels) Adam(u device.Update, w, grad, m, v device.Buf) {
	requireUpdate("Adam", w, "grad", grad)
	device.RequireSame("Adam", "m", m, w)
	device.RequireSame("Adam", "v", v, w)
	first := 1 - math.Pow(float64(u.Beta1), float64(u.Step))
	second := 1 - math.Pow(float64(u.Beta2), float64(u.Step))
	p := adamNumbers{
		scale: u.Scale, decay: u.WeightDecay, shrink: 1,
		beta1: u.Beta1, rest1: 1 - u.Beta1, beta2: u.Beta2, rest2: 1 - u.Beta2,
		root: float32(1 / math.Sqrt(second)), epsilon: u.Epsilon, rate: float32(float64(u.LR) / first),
	}
	if u.Decoupled {
		p.decay, p.shrink = 0, float32(1-float64(float64(u.LR)*float64(u.WeightDecay)))
	}
	k.runElements(elementsTask{op: opAdam, n: w.Len, dst: w, a: grad, b: m, c: v, adam: p})
}

func (t *elementsTask) update(lo, hi int) {
	w, grad := t.dst.F32()[lo:hi], t.a.F32()[lo:hi]
	switch {
	case t.op == opAdam:
		t.set.adam(w, grad, t.b.F32()[lo:hi], t.c.F32()[lo:hi], &t.adam)
	case t.b.IsZero():
		t.set.sgd(w, grad, &t.sgd)
	case t.first:
		t.set.firstMomentum(w, grad, t.b.F32()[lo:hi], &t.sgd)
	default:
		t.set.sgdMomentum(w, grad, t.b.F32()[lo:hi], &t.sgd)
	}
}

func (k *kernels) SumSquares(out, x device.Buf) {
	device.Require("SumSquares", "x", x, device.F32, x.Len)
	device.Require("SumSquares", "out", out, device.F64, (x.Len+device.NormBlock-1)/device.NormBlock)
	k.runElements(elementsTask{op: opSumSquares, n: x.Len, dst: out, a: x})
}

// sumSquares computes the blocks of x[lo:hi]; lo starts a block. A short last
// block is filled up with zeros.
func (t *elementsTask) sumSquares(lo, hi int) {
	out := t.dst.F64()[lo/device.NormBlock:]
	x := t.a.F32()[lo:hi]
	whole := len(x) / device.NormBlock
	t.set.sumSquares(out[:whole], x[:whole*device.NormBlock])
	if rest := x[whole*device.NormBlock:]; len(rest) > 0 {
		var last [device.NormBlock]float32
		copy(last[:], rest)
		portableSumSquares(out[whole:whole+1], last[:])
	}
}

func (k *kernels) AllFinite(x device.Buf) bool {
	device.Require("AllFinite", "x", x, device.F32, x.Len)
	return !k.runElements(elementsTask{op: opAllFinite, n: x.Len, a: x})
}
