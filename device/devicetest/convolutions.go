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
	// Sums and outputs that are worth a matrix unit.
	add(3, 90, 9, 7, 150, 3, 3, 2, 2, 1, 1, device.Blocked16)
	add(1, 250, 17, 19, 70, 1, 1, 1, 1, 0, 0, device.Blocked16)
	add(2, 64, 9, 10, 64, 3, 3, 1, 1, 1, 1, device.Blocked16)
	add(3, 135, 5, 9, 135, 1, 1, 1, 1, 0, 0, device.Blocked16)
	add(2, 130, 9, 5, 140, 1, 1, 2, 2, 0, 0, device.Blocked16)
	return append(all, convVariants()...)
}

// convVariants are convolutions in groups and with dilation.
func convVariants() []device.Conv {
	square := func(n, c, size, k, window, stride, pad, groups, dilation int) device.Conv {
		return device.Conv{
			N: n, C: c, H: size, W: size + 1, K: k, R: window, S: window, StrideH: stride, StrideW: stride, PadH: pad, PadW: pad,
			XLayout: device.Blocked16, Groups: groups, DilateH: dilation, DilateW: dilation,
		}
	}
	mixed := device.Conv{N: 2, C: 6, H: 11, W: 13, K: 9, R: 2, S: 3, StrideH: 3, StrideW: 2, PadH: 1, PadW: 3, Groups: 3, DilateH: 2, DilateW: 4, XLayout: device.Blocked16}
	plain := square(2, 3, 8, 6, 3, 1, 1, 3, 2)
	plain.XLayout = device.Plain
	return []device.Conv{
		mixed, plain,
		square(2, 5, 9, 17, 3, 1, 2, 1, 2),
		square(1, 17, 9, 5, 3, 2, 3, 0, 3),
		square(1, 16, 8, 16, 3, 4, 1, 1, 2), // taps of half of the phases only
		square(2, 6, 5, 4, 3, 1, 1, 2, 1),
		square(1, 32, 6, 64, 3, 1, 1, 2, 0),
		square(1, 48, 4, 48, 1, 1, 0, 4, 0),
		square(1, 5, 4, 10, 3, 1, 1, 5, 0),   // two channels of every channel
		square(2, 33, 7, 33, 3, 1, 1, 33, 0), // depthwise from here
		square(3, 16, 8, 16, 3, 2, 1, 16, 1),
		square(18, 17, 5, 17, 5, 1, 4, 17, 2),
		square(1, 3, 3, 3, 1, 4, 0, 3, 0), // pixels that no tap reads
	}
}

func convExperiments() []experiment {
	var all []experiment
	for _, d := range convShapes() {
		for _, whole := range []bool{true, false} {
			name := fmt.Sprintf("%dx%dx%dx%d to %d by %dx%d stride %dx%d pad %dx%d groups %d dilation %dx%d %s whole %v",
				d.N, d.C, d.H, d.W, d.K, d.R, d.S, d.StrideH, d.StrideW, d.PadH, d.PadW, d.Groups, d.DilateH, d.DilateW, d.XLayout, whole)
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
	// Not of the poisoned dy, which may meet the zeros around x.
	finite, dw := l.image(device.Blocked16, d.N, d.K, d.OutH(), d.OutW()), l.target(d.WeightLen(), true)
	k.ConvBackwardWeight(d, dw, x, finite)
	l.keep("dw", dw, 0)
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
