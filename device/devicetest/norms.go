package devicetest

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
)

// normBound is for float32 statistics and gradients, whose terms cancel.
const normBound = 5e-6

func normExperiments() []experiment {
	var all []experiment
	for _, d := range []device.BatchNorm{
		{N: 1, C: 1, H: 1, W: 1}, {N: 2, C: 3, H: 5, W: 5}, {N: 4, C: 17, H: 3, W: 3}, {N: 3, C: 5, H: 17, W: 17},
		{N: 2, C: 17, H: 20, W: 21}, {N: 40, C: 3, H: 6, W: 8}, {N: 5, C: 32, H: 1, W: 1},
	} {
		for _, d.Layout = range []device.Layout{device.Blocked16, device.Plain} {
			for _, d.Activation = range []device.Activation{device.Identity, device.ReLU} {
				name := fmt.Sprintf("%dx%dx%dx%d %s activation %d", d.N, d.C, d.H, d.W, d.Layout, d.Activation)
				all = append(all,
					experiment{"norm forward " + name, func(l *lab, k device.Kernels) { normForward(l, k, d) }},
					experiment{"norm backward " + name, func(l *lab, k device.Kernels) { normBackward(l, k, d) }},
				)
			}
			all = append(all, experiment{fmt.Sprintf("moments %dx%dx%dx%d %s", d.N, d.C, d.H, d.W, d.Layout), func(l *lab, k device.Kernels) { moments(l, k, d) }})
		}
	}
	return all
}

func (l *lab) normImage(d device.BatchNorm) device.Buf { return l.image(d.Layout, d.N, d.C, d.H, d.W) }

func (l *lab) keepNorm(label string, b device.Buf, d device.BatchNorm, bound float64) {
	l.keepImage(label, b, d.Layout, d.N, d.C, d.H, d.W, bound)
}

func moments(l *lab, k device.Kernels, d device.BatchNorm) {
	for _, offset := range []float32{0, 1, 30000} {
		x := l.normImage(d)
		for i := range x.F32() {
			x.F32()[i] += offset
		}
		mean, m2 := l.buffer(device.F64, d.C), l.buffer(device.F64, d.C)
		k.Moments(d, mean, m2, x)
		// About 30000 the float32 x itself has steps of 2e-3, but the mean is
		// that of the rounded x and has no excuse; m2 must not cancel.
		l.keep(fmt.Sprintf("mean about %v", offset), mean, 1e-6)
		l.keep(fmt.Sprintf("m2 about %v", offset), m2, normBound)
	}
	if d.Layout == device.Plain {
		return
	}
	x := l.normImage(d)
	for _, accumulate := range []bool{false, true} {
		out := l.target(d.C, accumulate)
		k.SumChannels(out, x, d.N, d.C, d.H, d.W, accumulate)
		l.keep("sums", out, normBound)
	}
}

func normForward(l *lab, k device.Kernels, d device.BatchNorm) {
	x, mean, invstd, scale, shift := l.normImage(d), l.floats(d.C), l.positive(d.C), l.floats(d.C), l.floats(d.C)
	y, residual, sum := l.buffer(device.F32, d.Len()), l.normImage(d), l.buffer(device.F32, d.Len())
	k.BatchNormForward(d, y, x, mean, invstd, scale, shift, device.Buf{})
	k.BatchNormForward(d, sum, x, mean, invstd, scale, shift, residual)
	k.BatchNormForward(d, residual, x, mean, invstd, scale, shift, residual)
	// Each step is one rounding of float32, so every device gets the same.
	l.keepNorm("y", y, d, 0)
	l.keepNorm("with residual", sum, d, 0)
	l.keepNorm("over residual", residual, d, 0)
}

func normBackward(l *lab, k device.Kernels, d device.BatchNorm) {
	x, mean, invstd, scale, dy, y := l.normImage(d), l.floats(d.C), l.positive(d.C), l.floats(d.C), l.normImage(d), l.normImage(d)
	if d.Activation == device.Identity {
		y = device.Buf{}
	}
	for variant := range 8 {
		frozen := variant&1 != 0
		d.Accumulate = variant&2 != 0
		var dresidual device.Buf
		if variant&4 != 0 {
			dresidual = l.buffer(device.F32, d.Len())
		}
		dx := l.targetImage(d.Layout, d.N, d.C, d.H, d.W, d.Accumulate)
		dscale, dshift := l.buffer(device.F32, d.C), l.buffer(device.F32, d.C)
		k.BatchNormBackward(d, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale, frozen)
		// With one element a channel the terms of dx cancel almost to nothing.
		if d.N*d.H*d.W > 1 || frozen || d.Accumulate {
			l.keepNorm(fmt.Sprintf("dx of variant %d", variant), dx, d, normBound)
		}
		l.keep("dscale", dscale, normBound)
		l.keep("dshift", dshift, normBound)
		if !dresidual.IsZero() {
			l.keepNorm("dresidual", dresidual, d, 0)
		}
	}
	d.Accumulate = false
	dscale, dshift := l.buffer(device.F32, d.C), l.buffer(device.F32, d.C)
	k.BatchNormBackward(d, dy, device.Buf{}, dscale, dshift, dy, x, y, mean, invstd, scale, true)
	l.keepNorm("dx over dy", dy, d, normBound)
}
