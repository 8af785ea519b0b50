package cpu

import "github.com/gradfusion/gradfusion/device"

// images finds channels in a tensor of images: a channel is a base and the
// floats from one of its pixels to the next.
type images struct {
	layout    device.Layout
	c, pixels int
}

func (t images) channel(n, c int) (base, stride int) {
	if t.layout == device.Blocked16 {
		return (n*device.Blocks(t.c)+c/block)*t.pixels*block + c%block, block
	}
	return (n*t.c + c) * t.pixels, 1
}

// layoutTask stores or adds channels of src into channels of dst; part n is
// image n.
type layoutTask struct {
	set          *kernelSet
	dst, src     []float32
	to, from     images
	toAt, fromAt int
	count        int
	accumulate   bool
}

func (k *kernels) runLayout(t layoutTask, n int) {
	w := k.take()
	t.set = k.set
	w.layout = t
	k.pool.run(w, &w.layout, n)
	w.layout = layoutTask{}
	k.give(w)
}

func (k *kernels) Reorder(dst device.Buf, dstLayout device.Layout, src device.Buf, srcLayout device.Layout, n, c, h, w int) {
	device.Require("Reorder", "dst", dst, device.F32, device.ImageLen(dstLayout, n, c, h, w))
	device.Require("Reorder", "src", src, device.F32, device.ImageLen(srcLayout, n, c, h, w))
	k.runLayout(layoutTask{
		dst: dst.F32(), src: src.F32(), to: images{dstLayout, c, h * w}, from: images{srcLayout, c, h * w}, count: c,
	}, n)
}

func (k *kernels) CopyChannels(layout device.Layout, dst device.Buf, dstC, at int, src device.Buf, srcC, n, h, w int) {
	device.Require("CopyChannels", "dst", dst, device.F32, device.ImageLen(layout, n, dstC, h, w))
	device.Require("CopyChannels", "src", src, device.F32, device.ImageLen(layout, n, srcC, h, w))
	device.RequireThat(at >= 0 && at+srcC <= dstC, "CopyChannels", "at", "puts channels outside of dst")
	k.runLayout(layoutTask{
		dst: dst.F32(), src: src.F32(), to: images{layout, dstC, h * w}, from: images{layout, srcC, h * w}, toAt: at, count: srcC,
	}, n)
}

func (k *kernels) ExtractChannels(layout device.Layout, dst device.Buf, dstC int, src device.Buf, srcC, at, n, h, w int, accumulate bool) {
	device.Require("ExtractChannels", "dst", dst, device.F32, device.ImageLen(layout, n, dstC, h, w))
	device.Require("ExtractChannels", "src", src, device.F32, device.ImageLen(layout, n, srcC, h, w))
	device.RequireThat(at >= 0 && at+dstC <= srcC, "ExtractChannels", "at", "names channels outside of src")
	k.runLayout(layoutTask{
		dst: dst.F32(), src: src.F32(), to: images{layout, dstC, h * w}, from: images{layout, srcC, h * w},
		fromAt: at, count: dstC, accumulate: accumulate,
	}, n)
}

func (t *layoutTask) do(_ *scratch, n int) {
	for c := 0; c < t.count; {
		if moved := t.moveMany(n, c); moved > 0 {
			c += moved
			continue
		}
		to, toStride := t.to.channel(n, t.toAt+c)
		from, fromStride := t.from.channel(n, t.fromAt+c)
		for range t.to.pixels {
			v := t.src[from]
			if t.accumulate {
				v += t.dst[to]
			}
			t.dst[to] = v
			to, from = to+toStride, from+fromStride
		}
		c++
	}
	if t.to.layout == device.Blocked16 {
		for c := t.to.c; c%block != 0; c++ {
			base, stride := t.to.channel(n, c)
			for i := range t.to.pixels {
				t.dst[base+i*stride] = 0
			}
		}
	}
}

// moveMany moves channels from c on that lie well together, and returns how
// many: all of them between plain tensors, a block where blocks begin.
func (t *layoutTask) moveMany(n, c int) int {
	to, _ := t.to.channel(n, t.toAt+c)
	from, _ := t.from.channel(n, t.fromAt+c)
	plainTo, plainFrom := t.to.layout == device.Plain, t.from.layout == device.Plain
	whole := c+block <= t.count && (plainTo || (t.toAt+c)%block == 0) && (plainFrom || (t.fromAt+c)%block == 0)
	size := t.to.pixels * block
	switch {
	case plainTo && plainFrom:
		t.move(to, from, (t.count-c)*t.to.pixels)
		return t.count - c
	case !whole:
		return 0
	case plainFrom && !t.accumulate:
		t.set.transpose(t.dst[to:][:size], t.src[from:][:size], t.to.pixels, t.to.pixels)
	case plainFrom, plainTo && t.set.untranspose == nil:
		return 0
	case plainTo:
		t.set.untranspose(t.dst[to:][:size], t.src[from:][:size], t.to.pixels, t.to.pixels, t.accumulate)
	default:
		t.move(to, from, size)
	}
	return block
}

// move stores or adds n elements.
func (t *layoutTask) move(to, from, n int) {
	dst, src := t.dst[to:][:n], t.src[from:][:n]
	if t.accumulate {
		t.set.add(dst, dst, src)
		return
	}
	copy(dst, src)
}
