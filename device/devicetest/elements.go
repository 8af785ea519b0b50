package devicetest

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
)

// lengths are about the widths of vectors, and about the share of a thread.
func lengths() []int {
	return []int{0, 1, 3, 7, 8, 9, 16, 17, 31, 33, 129, 1000, 16389}
}

// libraryBound is for functions of the library that another device may compute
// by its own polynomial: a few units of the last place.
const libraryBound = 5e-7

func elementExperiments() []experiment {
	var all []experiment
	for _, n := range lengths() {
		all = append(all,
			experiment{fmt.Sprintf("fill/%d", n), func(l *lab, k device.Kernels) {
				y := l.buffer(device.F32, n)
				k.Fill(y, 1.25)
				l.keep("dst", y, 0)
			}},
			experiment{fmt.Sprintf("add scale/%d", n), func(l *lab, k device.Kernels) { addScale(l, k, n) }},
			experiment{fmt.Sprintf("dropout/%d", n), func(l *lab, k device.Kernels) {
				for _, p := range []float32{0, 0.1, 0.5, 0.999} {
					y, x := l.buffer(device.F32, n), l.special(n)
					k.Dropout(y, x, p, 42)
					k.Dropout(x, x, p, 43)
					l.keep(fmt.Sprintf("y at %v", p), y, 0)
					l.keep(fmt.Sprintf("in place at %v", p), x, 0)
				}
			}},
		)
		for f := device.Identity; f <= device.SiLU; f++ {
			all = append(all, experiment{fmt.Sprintf("activate %d/%d", f, n), func(l *lab, k device.Kernels) { activations(l, k, f, n) }})
		}
	}
	return all
}

func addScale(l *lab, k device.Kernels, n int) {
	a, b, y := l.special(n), l.special(n), l.buffer(device.F32, n)
	k.Add(y, a, b)
	l.keep("a+b", y, 0)
	left, right := l.clone(a), l.clone(b)
	k.Add(left, left, b)
	k.Add(right, a, right)
	l.keep("into a", left, 0)
	l.keep("into b", right, 0)
	scaled := l.buffer(device.F32, n)
	k.Scale(scaled, a, -1.7)
	k.Scale(a, a, 0.3)
	l.keep("scaled", scaled, 0)
	l.keep("scaled in place", a, 0)
}

func activations(l *lab, k device.Kernels, f device.Activation, n int) {
	bound, slopeBound := 0.0, 0.0
	if f >= device.Tanh {
		bound = libraryBound
	}
	if f.SavesInput() {
		slopeBound = libraryBound
	}
	x, y := l.special(n), l.buffer(device.F32, n)
	k.Activate(f, y, x)
	l.keep("y", y, bound)
	k.Activate(f, x, x)
	l.keep("in place", x, bound)
	// y comes from the lab, so that the gradient's inputs have the same bits
	// on every device.
	out, dy := l.special(n), l.floats(n)
	dx, sum := l.buffer(device.F32, n), l.floats(n)
	k.ActivateBackward(f, dx, dy, out, false)
	k.ActivateBackward(f, sum, dy, out, true)
	k.ActivateBackward(f, dy, dy, out, false)
	l.keep("dx", dx, slopeBound)
	l.keep("dx added", sum, slopeBound)
	l.keep("dx in place", dy, slopeBound)
}
