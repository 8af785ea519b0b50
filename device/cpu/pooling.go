package cpu

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

type poolPass uint8

const (
	poolForward poolPass = iota
	poolBackward
	globalForward
	globalBackward
)

// poolingTask pools planes of 16 channels; part i is plane i.
type poolingTask struct {
	d          device.Pool
	pass       poolPass
	x, y       []float32 // or their gradients
	arg        []int32
	accumulate bool
}

func (k *kernels) runPooling(t poolingTask) {
	w := k.take()
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

func (t *poolingTask) do(_ *scratch, plane int) {
	blocks := device.Blocks(t.d.C)
	n, first := plane/blocks, plane%blocks*block
	valid := min(block, t.d.C-first)
	size := t.d.H * t.d.W * block
	x := t.x[plane*size:][:size]
	switch t.pass {
	case globalForward:
		t.average(t.y[n*t.d.C+first:][:valid], x)
		return
	case globalBackward:
		t.spread(x, t.y[n*t.d.C+first:][:valid])
		return
	}
	out := t.d.OutH() * t.d.OutW() * block
	y := t.y[plane*out:][:out]
	var arg []int32
	if t.d.Kind == device.MaxPool {
		arg = t.arg[plane*out:][:out]
	}
	if t.pass == poolBackward && !t.accumulate {
		clear(x)
	}
	for i := range t.d.OutH() * t.d.OutW() {
		v := t.window(i)
		at := y[i*block:][:block]
		switch {
		case t.pass == poolForward && arg != nil:
			v.maximum(at, arg[i*block:][:block], x, valid)
		case t.pass == poolForward:
			v.mean(at, x, valid)
		case arg != nil:
			for c, g := range at[:valid] {
				if where := arg[i*block+c]; where >= 0 {
					x[int(where)*block+c] += g
				}
			}
		default:
			v.spread(x, at, valid)
		}
	}
}

// window is the part of a pooling window inside the image.
type window struct {
	y0, y1, x0, x1, width int
	divisor               float32
}

func (t *poolingTask) window(i int) window {
	oy, ox := i/t.d.OutW(), i%t.d.OutW()
	v := window{width: t.d.W}
	v.y0, v.x0 = oy*t.d.StrideH-t.d.PadH, ox*t.d.StrideW-t.d.PadW
	v.y1, v.x1 = min(v.y0+t.d.R, t.d.H), min(v.x0+t.d.S, t.d.W)
	v.y0, v.x0 = max(0, v.y0), max(0, v.x0)
	v.divisor = float32(max(1, max(0, v.y1-v.y0)*max(0, v.x1-v.x0)))
	if t.d.CountPad {
		v.divisor = float32(t.d.R * t.d.S)
	}
	return v
}

// maximum takes the first maximum in row order, or the first NaN.
func (v window) maximum(y []float32, arg []int32, x []float32, valid int) {
	var best [block]float32
	var where [block]int32
	for c := range block {
		best[c], where[c] = float32(math.Inf(-1)), -1
	}
	for iy := v.y0; iy < v.y1; iy++ {
		for ix := v.x0; ix < v.x1; ix++ {
			at := iy*v.width + ix
			pixel := (*[block]float32)(x[at*block:])
			for c, value := range pixel {
				// One comparison settles most: the rest is NaN and the start.
				if value <= best[c] && where[c] >= 0 || best[c] != best[c] {
					continue
				}
				best[c], where[c] = value, int32(at)
			}
		}
	}
	clear(y[copy(y, best[:valid]):])
	copy(arg, where[:])
}

func (v window) mean(y, x []float32, valid int) {
	var sum [block]float32
	for iy := v.y0; iy < v.y1; iy++ {
		for ix := v.x0; ix < v.x1; ix++ {
			pixel := (*[block]float32)(x[(iy*v.width+ix)*block:])
			for c, value := range pixel {
				sum[c] += value
			}
		}
	}
	for c := range valid {
		y[c] = sum[c] / v.divisor
	}
	clear(y[valid:])
}

func (v window) spread(dx, dy []float32, valid int) {
	for iy := v.y0; iy < v.y1; iy++ {
		for ix := v.x0; ix < v.x1; ix++ {
			pixel := dx[(iy*v.width+ix)*block:][:valid]
			for c := range pixel {
				pixel[c] += dy[c] / v.divisor
			}
		}
	}
}

func (t *poolingTask) average(y, x []float32) {
	var sum [block]float64
	for len(x) > 0 {
		for c, v := range (*[block]float32)(x) {
			sum[c] += float64(v)
		}
		x = x[block:]
	}
	for c := range y {
		y[c] = float32(sum[c] / float64(t.d.H*t.d.W))
	}
}

func (t *poolingTask) spread(dx, dy []float32) {
	var share [block]float32
	inverse := 1 / float32(t.d.H*t.d.W)
	for c, g := range dy {
		share[c] = g * inverse
	}
	for ; len(dx) > 0; dx = dx[block:] {
		pixel := (*[block]float32)(dx)
		for c, v := range share {
			if t.accumulate {
				v += pixel[c]
			}
			pixel[c] = v
		}
	}
}
