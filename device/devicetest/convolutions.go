package devicetest

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
)

func convShapes() []device.Conv {
	var all []device.Conv
	add := func(n, c, h, w, k, r, s, strideH, strideW, padH, padW int, layout device.Layout) {
		all = append(all, device.Conv{N: n, C: c, H: h, W: w, K: k, R: r, S: s, StrideH: strideH, StrideW: strideW, PadH: padH, PadW: padW, XLayout: layout})
	}
	for _, layout := range []device.Layout{device.Blocked16, device.Plain} {
		add(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, layout)
		add(1, 1, 1, 1, 3, 3, 3, 1, 1, 1, 1, layout)
		add(2, 3, 9, 9, 17, 3, 3, 1, 1, 1, 1, layout)
		add(3, 16, 7, 7, 16, 3, 3, 1, 1, 1, 1, layout)
		add(2, 17, 5, 6, 33, 3, 3, 1, 1, 1, 1, layout)
		add(2, 5, 9, 7, 16, 3, 3, 2, 2, 1, 1, layout)
		add(2, 33, 8, 8, 17, 3, 3, 2, 2, 1, 1, layout)
		add(1, 16, 7, 7, 32, 1, 1, 1, 1, 0, 0, layout)
		add(2, 32, 7, 9, 16, 1, 1, 2, 2, 0, 0, layout)
		add(1, 3, 11, 11, 16, 7, 7, 2, 2, 3, 3, layout)
		add(1, 3, 12, 10, 5, 5, 5, 1, 1, 2, 2, layout)
		add(1, 4, 10, 10, 4, 5, 5, 3, 3, 0, 0, layout)
		add(1, 6, 6, 6, 6, 3, 3, 1, 1, 3, 3, layout)   // more padding than taps
		add(1, 3, 7, 8, 5, 2, 3, 3, 2, 1, 0, layout)   // nothing is square
		add(1, 3, 5, 5, 5, 1, 1, 1, 1, 2, 2, layout)   // padding around one tap
		add(2, 3, 4, 4, 5, 1, 3, 4, 4, 0, 1, layout)   // pixels that no tap reads
		add(1, 16, 3, 3, 16, 3, 3, 1, 1, 0, 0, layout) // one output
	}
	add(1, 3, 30, 31, 5, 3, 3, 1, 1, 1, 1, device.Blocked16) // several stretches of pixels
	add(18, 16, 3, 3, 3, 3, 3, 1, 1, 1, 1, device.Blocked16) // more images than groups
	add(3, 65, 3, 3, 17, 3, 3, 1, 1, 1, 1, device.Blocked16)
	return all
}

func convExperiments() []experiment {
	var all []experiment
	for _, d := range convShapes() {
		for _, whole := range []bool{true, false} {
			name := fmt.Sprintf("%dx%dx%dx%d to %d by %dx%d stride %dx%d pad %dx%d %s whole %v",
				d.N, d.C, d.H, d.W, d.K, d.R, d.S, d.StrideH, d.StrideW, d.PadH, d.PadW, d.XLayout, whole)
			all = append(all,
				experiment{"conv forward " + name, func(l *lab, k device.Kernels) { l.whole = whole; convForward(l, k, d) }},
				experiment{"conv backward " + name, func(l *lab, k device.Kernels) { l.whole = whole; convBackward(l, k, d) }},
			)
		}
		all = append(all, experiment{"conv of NaN " + fmt.Sprint(d), func(l *lab, k device.Kernels) { convPoisoned(l, k, d) }})
	}
	return all
}

// convPoisoned requires that NaN and infinity reach the elements that depend on
// them and no others, padding channels in particular.
func convPoisoned(l *lab, k device.Kernels, d device.Conv) {
	l.whole = true
	x, w := l.image(d.XLayout, d.N, d.C, d.H, d.W), l.floats(d.WeightLen())
	dy := l.image(device.Blocked16, d.N, d.K, d.OutH(), d.OutW())
	l.poison(x)
	l.poison(dy)
	y := l.targetImage(device.Blocked16, d.N, d.K, d.OutH(), d.OutW(), false)
	dx := l.targetImage(d.XLayout, d.N, d.C, d.H, d.W, true)
	d.Accumulate = true
	k.ConvForward(d, y, x, w, device.Buf{})
	k.ConvBackwardInput(d, dx, dy, w)
	l.keepImage("y", y, device.Blocked16, d.N, d.K, d.OutH(), d.OutW(), 0)
	l.keepImage("dx", dx, d.XLayout, d.N, d.C, d.H, d.W, 0)
}

func convForward(l *lab, k device.Kernels, d device.Conv) {
	x, w := l.image(d.XLayout, d.N, d.C, d.H, d.W), l.floats(d.WeightLen())
	for _, bias := range []device.Buf{{}, l.floats(d.K)} {
		y := l.targetImage(device.Blocked16, d.N, d.K, d.OutH(), d.OutW(), false)
		k.ConvForward(d, y, x, w, bias)
		l.keepImage("y", y, device.Blocked16, d.N, d.K, d.OutH(), d.OutW(), productBound)
	}
}

func convBackward(l *lab, k device.Kernels, d device.Conv) {
	x, w := l.image(d.XLayout, d.N, d.C, d.H, d.W), l.floats(d.WeightLen())
	dy := l.image(device.Blocked16, d.N, d.K, d.OutH(), d.OutW())
	for _, d.Accumulate = range []bool{false, true} {
		dx := l.targetImage(d.XLayout, d.N, d.C, d.H, d.W, d.Accumulate)
		dw := l.target(d.WeightLen(), d.Accumulate)
		k.ConvBackwardInput(d, dx, dy, w)
		k.ConvBackwardWeight(d, dw, x, dy)
		l.keepImage("dx", dx, d.XLayout, d.N, d.C, d.H, d.W, productBound)
		l.keep("dw", dw, productBound)
	}
}
