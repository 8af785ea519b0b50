package devicetest

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
)

func lossExperiments() []experiment {
	var all []experiment
	for _, size := range [][2]int{{1, 1}, {1, 10}, {5, 3}, {33, 10}, {100, 17}, {64, 1000}} {
		for _, smoothing := range []float32{0, 0.1} {
			for _, ignore := range []bool{false, true} {
				d := device.CrossEntropy{Rows: size[0], Classes: size[1], Smoothing: smoothing, HasIgnore: ignore, Ignore: -100}
				all = append(all, experiment{fmt.Sprintf("cross-entropy %+v", d), func(l *lab, k device.Kernels) { crossEntropy(l, k, d) }})
			}
		}
	}
	for _, n := range lengths() {
		all = append(all, experiment{fmt.Sprintf("squared error/%d", n), func(l *lab, k device.Kernels) {
			x, t, loss, dx := l.floats(n), l.floats(n), l.buffer(device.F64, 1), l.buffer(device.F32, n)
			k.SquaredErrorForward(loss, x, t)
			k.SquaredErrorBackward(dx, x, t, 0.37)
			l.keep("loss", loss, 1e-12)
			l.keep("dx", dx, 0)
		}})
	}
	return all
}

func crossEntropy(l *lab, k device.Kernels, d device.CrossEntropy) {
	logits, labels := l.floats(d.Rows*d.Classes), l.buffer(device.I32, d.Rows)
	logits.F32()[0] = 80 // exp overflows float32 unless the largest is subtracted
	for i := range labels.I32() {
		labels.I32()[i] = int32(l.random.IntN(d.Classes))
		if d.HasIgnore && i%3 == 1 {
			labels.I32()[i] = d.Ignore
		}
	}
	// A tie: the first of the largest logits is the answer.
	if d.Classes > 2 && d.Rows > 2 {
		logits.F32()[2*d.Classes], logits.F32()[2*d.Classes+1] = 90, 90
		labels.I32()[2] = 1
	}
	loss, correct := l.buffer(device.F64, 1), l.buffer(device.I32, 1)
	probs, dlogits := l.buffer(device.F32, logits.Len), l.buffer(device.F32, logits.Len)
	k.CrossEntropyForward(d, loss, correct, probs, logits, labels)
	k.CrossEntropyBackward(d, dlogits, probs, labels, 0.25)
	l.keep("loss", loss, 1e-6)
	l.keep("correct", correct, 0)
	l.keep("probs", probs, libraryBound)
	l.keep("dlogits", dlogits, libraryBound)
}
