package devicetest

import (
	"fmt"
	"math"

	"github.com/gradfusion/gradfusion/device"
)

func updateExperiments() []experiment {
	var all []experiment
	for _, n := range lengths() {
		all = append(all,
			experiment{fmt.Sprintf("sgd/%d", n), func(l *lab, k device.Kernels) { sgd(l, k, n) }},
			experiment{fmt.Sprintf("adam/%d", n), func(l *lab, k device.Kernels) { adam(l, k, n) }},
			experiment{fmt.Sprintf("rmsprop/%d", n), func(l *lab, k device.Kernels) { rmsProp(l, k, n) }},
			experiment{fmt.Sprintf("adagrad/%d", n), func(l *lab, k device.Kernels) { adaGrad(l, k, n) }},
			experiment{fmt.Sprintf("lamb/%d", n), func(l *lab, k device.Kernels) { lamb(l, k, n) }},
			experiment{fmt.Sprintf("sum of squares/%d", n), func(l *lab, k device.Kernels) {
				x := l.floats(n)
				out := l.buffer(device.F64, (n+device.NormBlock-1)/device.NormBlock)
				k.SumSquares(out, x)
				// 128 exact squares added in float64, in another order.
				l.keep("sums", out, 1e-15)
			}},
			experiment{fmt.Sprintf("all finite/%d", n), func(l *lab, k device.Kernels) { allFinite(l, k, n) }},
		)
	}
	return all
}

func sgd(l *lab, k device.Kernels, n int) {
	for i, u := range []device.Update{
		{Step: 3, LR: 0.1, Scale: 1},
		{Step: 3, LR: 0.1, Scale: 0.5, WeightDecay: 5e-4},
		{Step: 1, LR: 0.1, Scale: 0.5, WeightDecay: 5e-4, Momentum: 0.9, Dampening: 0.3},
		{Step: 2, LR: 0.1, Scale: 0.5, WeightDecay: 5e-4, Momentum: 0.9, Dampening: 0.3},
		{Step: 1, LR: 0.1, Scale: 1, WeightDecay: 5e-4, Momentum: 0.9, Nesterov: true},
		{Step: 9, LR: 0.1, Scale: 1, WeightDecay: 5e-4, Momentum: 0.9, Nesterov: true},
	} {
		w, grad := l.floats(n), l.floats(n)
		var momentum device.Buf
		if u.Momentum != 0 {
			momentum = l.floats(n)
		}
		k.SGD(u, w, grad, momentum)
		l.keep(fmt.Sprintf("weights %d", i), w, 0)
		if u.Momentum != 0 {
			l.keep(fmt.Sprintf("momentum %d", i), momentum, 0)
		}
	}
}

func adam(l *lab, k device.Kernels, n int) {
	for i, u := range []device.Update{
		{Step: 1, LR: 1e-3, Scale: 1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8},
		{Step: 7, LR: 1e-3, Scale: 0.25, WeightDecay: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8},
		{Step: 900, LR: 1e-3, Scale: 1, WeightDecay: 0.01, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-6, Decoupled: true},
	} {
		w, grad, m, v := l.floats(n), l.floats(n), l.floats(n), l.positive(n)
		k.Adam(u, w, grad, m, v)
		l.keep(fmt.Sprintf("weights %d", i), w, 0)
		l.keep(fmt.Sprintf("m %d", i), m, 0)
		l.keep(fmt.Sprintf("v %d", i), v, 0)
	}
}

func allFinite(l *lab, k device.Kernels, n int) {
	x := l.floats(n)
	answers := l.buffer(device.I32, 4)
	clear(answers.I32())
	record := func(i int) {
		if k.AllFinite(x) {
			answers.I32()[i] = 1
		}
	}
	record(0)
	if n > 0 {
		x.F32()[n-1] = float32(math.NaN())
		record(1)
		x.F32()[n-1] = float32(math.Inf(-1))
		record(2)
		x.F32()[n-1] = math.MaxFloat32
		x.F32()[n/2] = -math.MaxFloat32
		record(3)
	}
	l.keep("answers", answers, 0)
}

func rmsProp(l *lab, k device.Kernels, n int) {
	for i, u := range []device.Update{
		{Step: 1, LR: 1e-2, Scale: 1, Beta2: 0.99, Epsilon: 1e-8},
		{Step: 4, LR: 1e-2, Scale: 0.25, WeightDecay: 0.01, Beta2: 0.9, Epsilon: 1e-6, Momentum: 0.75},
	} {
		w, grad, square := l.floats(n), l.floats(n), l.positive(n)
		var momentum device.Buf
		if u.Momentum != 0 {
			momentum = l.floats(n)
		}
		k.RMSProp(u, w, grad, square, momentum)
		l.keep(fmt.Sprintf("weights %d", i), w, 0)
		l.keep(fmt.Sprintf("square %d", i), square, 0)
		if u.Momentum != 0 {
			l.keep(fmt.Sprintf("momentum %d", i), momentum, 0)
		}
	}
}

func adaGrad(l *lab, k device.Kernels, n int) {
	w, grad, sum := l.floats(n), l.floats(n), l.positive(n)
	k.AdaGrad(device.Update{Step: 3, LR: 0.1, Scale: 0.5, WeightDecay: 0.01, Epsilon: 1e-10}, w, grad, sum)
	l.keep("weights", w, 0)
	l.keep("sum", sum, 0)
}

func lamb(l *lab, k device.Kernels, n int) {
	for i, u := range []device.Update{
		{Step: 1, LR: 1e-2, Scale: 1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-6},
		{Step: 9, LR: 1e-2, Scale: 0.5, WeightDecay: 0.01, Beta1: 0.8, Beta2: 0.95, Epsilon: 1e-6},
	} {
		w, grad, m, v := l.floats(n), l.floats(n), l.floats(n), l.positive(n)
		squares := l.buffer(device.F64, (n+device.NormBlock-1)/device.NormBlock)
		k.LAMBMoments(u, squares, w, grad, m, v)
		k.LAMBStep(u, w, m, v)
		l.keep(fmt.Sprintf("weights %d", i), w, 0)
		l.keep(fmt.Sprintf("m %d", i), m, 0)
		l.keep(fmt.Sprintf("v %d", i), v, 0)
		// 128 squares added in float64, in another order.
		l.keep(fmt.Sprintf("squares %d", i), squares, 1e-15)
	}
}
