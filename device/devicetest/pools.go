package devicetest

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
)

func poolShapes() []device.Pool {
	return []device.Pool{
		{N: 1, C: 1, H: 1, W: 1, R: 1, S: 1, StrideH: 1, StrideW: 1},
		{N: 2, C: 3, H: 6, W: 6, R: 2, S: 2, StrideH: 2, StrideW: 2},
		{N: 2, C: 17, H: 7, W: 9, R: 2, S: 2, StrideH: 2, StrideW: 2},
		{N: 1, C: 16, H: 9, W: 8, R: 3, S: 3, StrideH: 2, StrideW: 2, PadH: 1, PadW: 1},
		{N: 1, C: 5, H: 5, W: 7, R: 3, S: 2, StrideH: 1, StrideW: 3, PadH: 1},
		{N: 1, C: 33, H: 4, W: 4, R: 4, S: 4, StrideH: 4, StrideW: 4},
		{N: 1, C: 2, H: 3, W: 3, R: 2, S: 2, StrideH: 2, StrideW: 2, PadH: 2, PadW: 2}, // windows of nothing
	}
}

func poolExperiments() []experiment {
	var all []experiment
	for _, d := range poolShapes() {
		for _, d.Kind = range []device.PoolKind{device.MaxPool, device.AvgPool} {
			for _, d.CountPad = range []bool{false, true} {
				all = append(all, experiment{fmt.Sprintf("pool %+v", d), func(l *lab, k device.Kernels) { pool(l, k, d) }})
			}
		}
		all = append(all, experiment{fmt.Sprintf("global pool %+v", d), func(l *lab, k device.Kernels) { globalPool(l, k, d.N, d.C, d.H, d.W) }})
	}
	return all
}

func pool(l *lab, k device.Kernels, d device.Pool) {
	h, w := d.OutH(), d.OutW()
	y := l.buffer(device.F32, d.YLen())
	arg := l.buffer(device.I32, d.YLen())
	bound := normBound
	if d.Kind == device.MaxPool {
		bound = 0
	}
	l.whole = true // equal values, so that the first has to win
	x := l.image(device.Blocked16, d.N, d.C, d.H, d.W)
	l.whole = false
	k.PoolForward(d, y, arg, x)
	l.keepImage("y", y, device.Blocked16, d.N, d.C, h, w, bound)
	strange := l.special(d.XLen())
	padding(d.N, d.C, d.H, d.W, func(i int) { strange.F32()[i] = 0 })
	other, otherArg := l.buffer(device.F32, d.YLen()), l.buffer(device.I32, d.YLen())
	k.PoolForward(d, other, otherArg, strange)
	if d.Kind == device.MaxPool {
		l.keepImage("y of special numbers", other, device.Blocked16, d.N, d.C, h, w, 0)
		padding(d.N, d.C, h, w, func(i int) { arg.I32()[i], otherArg.I32()[i] = 0, 0 })
		l.keep("arg", l.clone(arg), 0)
		l.keep("arg of special numbers", otherArg, 0)
	}
	dy := l.image(device.Blocked16, d.N, d.C, h, w)
	for _, d.Accumulate = range []bool{false, true} {
		dx := l.targetImage(device.Blocked16, d.N, d.C, d.H, d.W, d.Accumulate)
		k.PoolBackward(d, dx, dy, arg)
		l.keepImage("dx", dx, device.Blocked16, d.N, d.C, d.H, d.W, normBound)
	}
}

func globalPool(l *lab, k device.Kernels, n, c, h, w int) {
	x, y := l.image(device.Blocked16, n, c, h, w), l.buffer(device.F32, n*c)
	k.GlobalAvgForward(y, x, n, c, h, w)
	l.keep("y", y, normBound)
	dy := l.floats(n * c)
	for _, accumulate := range []bool{false, true} {
		dx := l.targetImage(device.Blocked16, n, c, h, w, accumulate)
		k.GlobalAvgBackward(dx, dy, n, c, h, w, accumulate)
		l.keepImage("dx", dx, device.Blocked16, n, c, h, w, 0)
	}
}
