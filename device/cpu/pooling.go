package cpu

import "github.com/gradfusion/gradfusion/device"

type poolPass uint8

const (
	poolForward poolPass = iota
	poolBackward
	globalForward
	globalBackward
)

// poolingTask pools planes of 16 channels; part i is plane i.
type poolingTask struct {
	set        *kernelSet
	d          device.Pool
	pass       poolPass
	x, y       []float32 // or their gradients
	arg        []int32
	accumulate bool
}

func (k *kernels) runPooling(t poolingTask) {
	w := k.take()
	t.set = k.set
	w.pooling = t
	k.pool.run(w, &w.pooling, t.d.N*device.Blocks(t.d.C))
	w.pooling = poolingTask{}
	k.give(w)
}

func requirePool(kernel string, d device.Pool, xName string, x device.Buf, yName string, y, arg device.Buf) {
	d.Check(kernel)
	device.Require(kernel, xName, x, device.F32, d.XLen())
	device.Require(kernel, yName, y, device.F32, d.YLen())
	if d.Kind == device.MaxPool {
		device.Require(kernel, "arg", arg, device.I32, d.YLen())
	}
}

func (k *kernels) PoolForward(d device.Pool, y, arg, x device.Buf) {
	requirePool("PoolForward", d, "x", x, "y", y, arg)
	t := poolingTask{d: d, pass: poolForward, x: x.F32(), y: y.F32()}
	if d.Kind == device.MaxPool {
		t.arg = arg.I32()
	}
	k.runPooling(t)
}

func (k *kernels) PoolBackward(d device.Pool, dx, dy, arg device.Buf) {
	requirePool("PoolBackward", d, "dx", dx, "dy", dy, arg)
	t := poolingTask{d: d, pass: poolBackward, x: dx.F32(), y: dy.F32(), accumulate: d.Accumulate}
	if d.Kind == device.MaxPool {
		t.arg = arg.I32()
	}
	k.runPooling(t)
}

func (k *kernels) GlobalAvgForward(y, x device.Buf, n, c, h, w int) {
	device.Require("GlobalAvgForward", "y", y, device.F32, n*c)
	device.Require("GlobalAvgForward", "x", x, device.F32, device.ImageLen(device.Blocked16, n, c, h, w))
	k.runPooling(poolingTask{d: device.Pool{N: n, C: c, H: h, W: w}, pass: globalForward, x: x.F32(), y: y.F32()})
}

func (k *kernels) GlobalAvgBackward(dx, dy device.Buf, n, c, h, w int, accumulate bool) {
	device.Require("GlobalAvgBackward", "dx", dx, device.F32, device.ImageLen(device.Blocked16, n, c, h, w))
	device.Require("GlobalAvgBackward", "dy", dy, device.F32, n*c)
	k.runPooling(poolingTask{d: device.Pool{N: n, C: c, H: h, W: w}, pass: globalBackward, x: dx.F32(), y: dy.F32(), accumulate: accumulate})
}

func (t *poolingTask) do(s *scratch, plane int) {
	blocks := device.Blocks(t.d.C)
	n, first := plane/blocks, plane%blocks*block
	valid := min(block, t.d.C-first)
	size := t.d.H * t.d.W * block
	x := t.x[plane*size:][:size]
	switch t.pass {
	case globalForward:
		s.sums = grow(s.sums, block)
		t.average(t.y[n*t.d.C+first:][:valid], x, s.sums)
		return
	case globalBackward:
		t.spread(x, t.y[n*t.d.C+first:][:valid])
		return
	}
	width := t.d.OutW()
	out := t.d.OutH() * width * block
	r := &s.windows
	r.large, r.stride, r.step = x, t.d.StrideW*block*4, int32(t.d.StrideW)
	add := t.accumulate || !t.covers()
	if t.pass == poolBackward && add && !t.accumulate {
		clear(x)
	}
	for oy := range t.d.OutH() {
		for ox, next := 0, 0; ox < width; ox = next {
			next = t.window(r, oy, ox)
			lo, hi := plane*out+(oy*width+ox)*block, plane*out+(oy*width+next)*block
			r.small, r.pixels = t.y[lo:hi], next-ox
			if t.arg != nil {
				r.arg = t.arg[lo:hi]
			}
			t.run(r, add, valid)
		}
	}
	*r = windowRun{taps: r.taps[:0]}
}

// run pools the pixels of one run.
func (t *poolingTask) run(r *windowRun, add bool, valid int) {
	forward := t.pass == poolForward
	switch {
	case len(r.taps) == 0:
		if forward {
			r.nothing(valid)
		}
	case forward && r.arg != nil:
		t.set.maxForward(r)
	case forward:
		t.set.averageForward(r)
	case r.arg != nil:
		t.set.maxBackward(r, add)
	default:
		t.set.averageBackward(r, add)
	}
}

func (t *poolingTask) average(y, x []float32, sums []float64) {
	clear(sums)
	t.set.addRows(sums, x, block, len(x)/block)
	for c := range y {
		y[c] = float32(sums[c] / float64(t.d.H*t.d.W))
	}
}

func (t *poolingTask) spread(dx, dy []float32) {
	var share [block]float32
	inverse := 1 / float32(t.d.H*t.d.W)
	for c, g := range dy {
		share[c] = g * inverse
	}
	for ; len(dx) > 0; dx = dx[block:] {
		if t.accumulate {
			portableAdd(dx[:block], dx[:block], share[:])
			continue
		}
		*(*[block]float32)(dx) = share
	}
}
