//go:build ascend && linux && (amd64 || arm64)

package aclnn

import (
	"errors"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// kernels are the host's, with some on the accelerator.
type kernels struct {
	device.Kernels
	owner *Device
}

func sizeOf(n int, t device.Type) int { return n * t.Size() }

// floats are the first n numbers of a room that was downloaded.
func (r *room) floats(n int) []float32 {
	return device.FromBytes(device.F32, r.host.Bytes[:sizeOf(n, device.F32)]).F32()
}

// Add adds on the accelerator.
func (k *kernels) Add(dst, a, b device.Buf) {
	if device.IsHalf(dst, a, b) {
		k.owner.widened.Add(dst, a, b)
		return
	}
	device.RequireSame("Add", "a", a, dst)
	device.RequireSame("Add", "b", b, dst)
	n := dst.Len
	if n == 0 || dst.Type != device.F32 {
		k.Kernels.Add(dst, a, b) // also refuses what does not fit
		return
	}
	d := k.owner
	d.mu.Lock()
	defer d.mu.Unlock()
	d.compute("Add", func() error {
		if err := errors.Join(d.upload(&d.rooms[left], a.Bytes()), d.upload(&d.rooms[right], b.Bytes()), d.makeRoom(&d.rooms[result], dst.Size())); err != nil {
			return err
		}
		if err := d.add(left, right, result, n); err != nil {
			return err
		}
		return d.download(&d.rooms[result], dst.Size())
	})
	copy(dst.Bytes(), d.rooms[result].host.Bytes)
}

// add queues the sum of two rooms of n numbers, in a third.
func (d *Device) add(a, b, out, n int) error {
	x, err := d.vector(device.F32, &d.rooms[a], n)
	if err != nil {
		return err
	}
	y, err := d.vector(device.F32, &d.rooms[b], n)
	if err != nil {
		return err
	}
	z, err := d.vector(device.F32, &d.rooms[out], n)
	if err != nil {
		return err
	}
	return d.start("aclnnAdd", d.library.aclnnAdd, ascend.Call(d.library.aclnnAddGetWorkspaceSize, x, y, d.one, z,
		uintptr(unsafe.Pointer(&d.planned.workspace)), uintptr(unsafe.Pointer(&d.planned.executor))))
}

// Cast converts on the accelerator.
func (k *kernels) Cast(dst, src device.Buf) {
	if dst.Len != src.Len || dst.Len == 0 || dst.Type == src.Type || dst.Type > device.F64 || src.Type > device.F64 {
		k.Kernels.Cast(dst, src)
		return
	}
	d := k.owner
	d.mu.Lock()
	defer d.mu.Unlock()
	d.compute("Cast", func() error {
		if err := errors.Join(d.upload(&d.rooms[left], src.Bytes()), d.makeRoom(&d.rooms[result], dst.Size())); err != nil {
			return err
		}
		x, err := d.vector(src.Type, &d.rooms[left], src.Len)
		if err != nil {
			return err
		}
		y, err := d.vector(dst.Type, &d.rooms[result], dst.Len)
		if err != nil {
			return err
		}
		err = d.start("aclnnCast", d.library.aclnnCast, ascend.Call(d.library.aclnnCastGetWorkspaceSize, x, numberOf(dst.Type), y,
			uintptr(unsafe.Pointer(&d.planned.workspace)), uintptr(unsafe.Pointer(&d.planned.executor))))
		if err != nil {
			return err
		}
		return d.download(&d.rooms[result], dst.Size())
	})
	copy(dst.Bytes(), d.rooms[result].host.Bytes)
}

// SumRows sums on the accelerator.
func (k *kernels) SumRows(out, a device.Buf, rows, cols int, accumulate bool) {
	switch {
	case device.IsHalf(a):
		k.owner.widened.SumRows(out, a, rows, cols, accumulate)
		return
	case rows < 1 || cols < 1 || a.Type != device.F32:
		k.Kernels.SumRows(out, a, rows, cols, accumulate)
		return
	}
	device.Require("SumRows", "out", out, device.F32, cols)
	device.Require("SumRows", "a", a, device.F32, rows*cols)
	r, c := int64(rows), int64(cols)
	k.owner.reduce("SumRows", out.F32()[:cols], a, k.owner.first, []int64{r, c}, []int64{c, 1}, []int64{c}, []int64{1}, accumulate)
}

// SumChannels sums on the accelerator.
func (k *kernels) SumChannels(out, x device.Buf, n, c, h, w int, accumulate bool) {
	switch {
	case device.IsHalf(x):
		k.owner.widened.SumChannels(out, x, n, c, h, w, accumulate)
		return
	case n < 1 || c < 1 || h < 1 || w < 1 || x.Type != device.F32:
		k.Kernels.SumChannels(out, x, n, c, h, w, accumulate)
		return
	}
	device.Require("SumChannels", "out", out, device.F32, c)
	device.Require("SumChannels", "x", x, device.F32, device.ImageLen(device.Blocked16, n, c, h, w))
	const block = device.Block
	blocks, pixels := int64(device.Blocks(c)), int64(h*w)
	k.owner.reduce("SumChannels", out.F32()[:c], x.Slice(0, device.ImageLen(device.Blocked16, n, c, h, w)), k.owner.firstLast,
		[]int64{int64(n), blocks, pixels, block}, []int64{blocks * pixels * block, pixels * block, block, 1},
		[]int64{blocks, block}, []int64{block, 1}, accumulate)
}

// reduce sums a tensor over some of its dimensions; out may be shorter than what
// is left, whose rest is padding.
func (d *Device) reduce(kernel string, out []float32, a device.Buf, over uintptr, dims, strides, outDims, outStrides []int64, accumulate bool) {
	elements, outElements := 1, 1
	for _, n := range dims {
		elements *= int(n)
	}
	for _, n := range outDims {
		outElements *= int(n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.compute(kernel, func() error {
		size := sizeOf(outElements, device.F32)
		if err := errors.Join(d.upload(&d.rooms[left], a.Slice(0, elements).Bytes()), d.makeRoom(&d.rooms[result], size)); err != nil {
			return err
		}
		x, err := d.view(device.F32, &d.rooms[left], elements, dims, strides)
		if err != nil {
			return err
		}
		y, err := d.view(device.F32, &d.rooms[result], outElements, outDims, outStrides)
		if err != nil {
			return err
		}
		const keepDimensions = 0
		err = d.start("aclnnReduceSum", d.library.aclnnReduceSum, ascend.Call(d.library.aclnnReduceSumGetWorkspaceSize, x, over, keepDimensions, float, y,
			uintptr(unsafe.Pointer(&d.planned.workspace)), uintptr(unsafe.Pointer(&d.planned.executor))))
		if err != nil {
			return err
		}
		return d.download(&d.rooms[result], size)
	})
	sums := d.rooms[result].floats(len(out))
	if !accumulate {
		copy(out, sums)
		return
	}
	for i, v := range sums {
		out[i] += v
	}
}
