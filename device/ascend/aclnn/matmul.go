//go:build ascend && linux && (amd64 || arm64)

package aclnn

import (
	"errors"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// MatMul multiplies on the accelerator, and adds there where it accumulates. Bias
// and activation are the host's.
func (k *kernels) MatMul(m device.MatMul, c, a, b, bias device.Buf) {
	switch {
	case device.IsHalf(c, a, b):
		k.owner.widened.MatMul(m, c, a, b, bias)
		return
	case m.M < 1 || m.N < 1 || m.K < 1 || c.Type != device.F32 || a.Type != device.F32 || b.Type != device.F32:
		k.Kernels.MatMul(m, c, a, b, bias) // also refuses what does not fit
		return
	}
	m.Check()
	an, bn, cn := m.Lens()
	device.Require("MatMul", "c", c, device.F32, cn)
	device.Require("MatMul", "a", a, device.F32, an)
	device.Require("MatMul", "b", b, device.F32, bn)
	if !bias.IsZero() {
		device.Require("MatMul", "bias", bias, device.F32, m.N)
	}
	d := k.owner
	d.mu.Lock()
	defer d.mu.Unlock()
	d.compute("MatMul", func() error { return d.multiply(m, c, a.Slice(0, an), b.Slice(0, bn)) })
	product := &d.rooms[result]
	if m.Accumulate {
		product = &d.rooms[sum]
	}
	k.finish(m, c, product.floats(m.M*m.N), bias)
}

// multiply queues the product, tightly packed, and its sum with c.
func (d *Device) multiply(m device.MatMul, c, a, b device.Buf) error {
	n := m.M * m.N
	size := sizeOf(n, device.F32)
	if err := errors.Join(d.upload(&d.rooms[left], a.Bytes()), d.upload(&d.rooms[right], b.Bytes()), d.makeRoom(&d.rooms[result], size)); err != nil {
		return err
	}
	lda, ldb, ldc := m.Strides()
	x, err := d.matrix(left, a.Len, m.M, m.K, lda, m.TransA)
	if err != nil {
		return err
	}
	y, err := d.matrix(right, b.Len, m.K, m.N, ldb, m.TransB)
	if err != nil {
		return err
	}
	z, err := d.matrix(result, n, m.M, m.N, m.N, false)
	if err != nil {
		return err
	}
	err = d.start("aclnnMatmul", d.library.aclnnMatmul, ascend.Call(d.library.aclnnMatmulGetWorkspaceSize, x, y, z, keepType,
		uintptr(unsafe.Pointer(&d.planned.workspace)), uintptr(unsafe.Pointer(&d.planned.executor))))
	if err != nil {
		return err
	}
	if !m.Accumulate {
		return d.download(&d.rooms[result], size)
	}
	if err := errors.Join(d.makeRoom(&d.rooms[before], size), d.makeRoom(&d.rooms[sum], size)); err != nil {
		return err
	}
	for i := range m.M {
		copy(d.rooms[before].floats(n)[i*m.N:], c.F32()[i*ldc:][:m.N])
	}
	err = d.accelerator.CopyAsync(d.rooms[before].memory.At, d.rooms[before].host.At(), size, ascend.HostToDevice, d.stream)
	if err != nil {
		return err
	}
	if err := d.add(before, result, sum, n); err != nil {
		return err
	}
	return d.download(&d.rooms[sum], size)
}

// matrix describes an operand of rows x cols as it is stored, row after row with a
// stride, or transposed.
func (d *Device) matrix(room, elements, rows, cols, stride int, transposed bool) (uintptr, error) {
	strides := []int64{int64(stride), 1}
	if transposed {
		strides[0], strides[1] = 1, int64(stride)
	}
	return d.view(device.F32, &d.rooms[room], elements, []int64{int64(rows), int64(cols)}, strides)
}

// finish puts a product into c, with bias and activation.
func (k *kernels) finish(m device.MatMul, c device.Buf, product []float32, bias device.Buf) {
	_, _, ldc := m.Strides()
	for i := range m.M {
		line := c.F32()[i*ldc:][:m.N]
		copy(line, product[i*m.N:])
		if !bias.IsZero() {
			for j, v := range bias.F32()[:m.N] {
				line[j] += v
			}
		}
		if m.Activation != device.Identity && ldc != m.N {
			k.activate(m.Activation, c.Slice(i*ldc, i*ldc+m.N))
		}
	}
	if m.Activation != device.Identity && ldc == m.N {
		k.activate(m.Activation, c.Slice(0, m.M*m.N))
	}
}

func (k *kernels) activate(f device.Activation, b device.Buf) { k.Activate(f, b, b) }
