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
	x, y       tensor // or their gradients
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
	device.RequireFloat(kernel, xName, x, d.XLen())
	device.RequireFloat(kernel, yName, y, d.YLen())
	if d.Kind == device.MaxPool {
		device.Require(kernel, "arg", arg, device.I32, d.YLen())
	}
}

func (k *kernels) PoolForward(d device.Pool, y, arg, x device.Buf) {
	requirePool("PoolForward", d, "x", x, "y", y, arg)
	t := poolingTask{d: d, pass: poolForward, x: k.set.tensor(x), y: k.set.tensor(y)}
	if d.Kind == device.MaxPool {
		t.arg = arg.I32()
	}
	k.runPooling(t)
}

func (k *kernels) PoolBackward(d device.Pool, dx, dy, arg device.Buf) {
	requirePool("PoolBackward", d, "dx", dx, "dy", dy, arg)
	t := poolingTask{d: d, pass: poolBackward, x: k.set.tensor(dx), y: k.set.tensor(dy), accumulate: d.Accumulate}
	if d.Kind == device.MaxPool {
		t.arg = arg.I32()
	}
	k.runPooling(t)
}

func (k *kernels) GlobalAvgForward(y, x device.Buf, n, c, h, w int) {
	device.RequireFloat("GlobalAvgForward", "y", y, n*c)
	device.RequireFloat("GlobalAvgForward", "x", x, device.ImageLen(device.Blocked16, n, c, h, w))
	k.runPooling(poolingTask{d: device.Pool{N: n, C: c, H: h, W: w}, pass: globalForward, x: k.set.tensor(x), y: k.set.tensor(y)})
}

func (k *kernels) GlobalAvgBackward(dx, dy device.Buf, n, c, h, w int, accumulate bool) {
	device.RequireFloat("GlobalAvgBackward", "dx", dx, device.ImageLen(device.Blocked16, n, c, h, w))
	device.RequireFloat("GlobalAvgBackward", "dy", dy, n*c)
	k.runPooling(poolingTask{d: device.Pool{N: n, C: c, H: h, W: w}, pass: globalBackward, x: k.set.tensor(dx), y: k.set.tensor(dy), accumulate: accumulate})
}

func (t *poolingTask) do(s *scratch, plane int) {
	blocks := device.Blocks(t.d.C)
	n, first := plane/blocks, plane%blocks*block
	valid := min(block, t.d.C-first)
	size := t.d.H * t.d.W * block
	at := n*t.d.C + first
	switch t.pass {
	case globalForward:
		s.sums = grow(s.sums, block)
		y := t.y.place(s.pixel[:], at, at+valid, false)
		t.average(y, t.x.read(t.room(s, size), plane*size, (plane+1)*size), s.sums)
		t.y.wrote(y, at)
	case globalBackward:
		x := t.x.place(t.room(s, size), plane*size, (plane+1)*size, t.accumulate)
		t.spread(x, t.y.read(s.pixel[:], at, at+valid))
		t.x.wrote(x, plane*size)
	default:
		t.windows(s, plane, size, valid)
	}
}

// room is memory for planes of that many floats in all, if any tensor needs it.
func (t *poolingTask) room(s *scratch, n int) []float32 {
	if t.x.halves == nil && t.y.halves == nil {
		return nil
	}
	return s.plane.floats(n)
}

// windows pools a plane, or brings its gradient back.
func (t *poolingTask) windows(s *scratch, plane, size, valid int) {
	width := t.d.OutW()
	out := t.d.OutH() * width * block
	room := t.room(s, size+out)
	forward := t.pass == poolForward
	var x, y []float32
	if second := room[min(size, len(room)):]; forward {
		x, y = t.x.read(room, plane*size, (plane+1)*size), t.y.place(second, plane*out, (plane+1)*out, false)
	} else {
		x, y = t.x.place(room, plane*size, (plane+1)*size, t.accumulate), t.y.read(second, plane*out, (plane+1)*out)
	}
	r := &s.windows
	r.large, r.stride, r.step = x, t.d.StrideW*block*4, int32(t.d.StrideW)
	add := t.accumulate || !t.covers()
	if !forward && add && !t.accumulate {
		clear(x)
	}
	for oy := range t.d.OutH() {
		for ox, next := 0, 0; ox < width; ox = next {
			next = t.window(r, oy, ox)
			lo, hi := (oy*width+ox)*block, (oy*width+next)*block
			r.small, r.pixels = y[lo:hi], next-ox
			if t.arg != nil {
				r.arg = t.arg[plane*out:][lo:hi]
			}
			t.run(r, add, valid)
		}
	}
	*r = windowRun{taps: r.taps[:0]}
	if forward {
		t.y.wrote(y, plane*out)
	} else {
		t.x.wrote(x, plane*size)
	}
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
