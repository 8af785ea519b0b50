package extblas

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// MatMul multiplies with the library; the bias is laid into C first, and the
// activation applied after.
func (k *kernels) MatMul(d device.MatMul, c, a, b, bias device.Buf) {
	if device.IsHalf(c, a, b) {
		k.owner.widened.MatMul(d, c, a, b, bias)
		return
	}
	if d.K == 0 || d.M == 0 || d.N == 0 || c.Type != device.F32 || a.Type != device.F32 || b.Type != device.F32 {
		k.Kernels.MatMul(d, c, a, b, bias) // also refuses what does not fit
		return
	}
	d.Check()
	an, bn, cn := d.Lens()
	device.Require("MatMul", "c", c, device.F32, cn)
	device.Require("MatMul", "a", a, device.F32, an)
	device.Require("MatMul", "b", b, device.F32, bn)
	lda, ldb, ldc := d.Strides()
	accumulate := d.Accumulate
	if !bias.IsZero() {
		device.Require("MatMul", "bias", bias, device.F32, d.N)
		layBias(c.F32(), bias.F32()[:d.N], d.M, ldc, accumulate)
		accumulate = true
	}
	k.owner.library.multiply(product{
		transA: d.TransA, transB: d.TransB, m: d.M, n: d.N, k: d.K, a: start(a), b: start(b), c: start(c),
		lda: lda, ldb: ldb, ldc: ldc, accumulate: accumulate,
	})
	if d.Activation == device.Identity {
		return
	}
	if ldc == d.N {
		k.activate(d.Activation, c.Slice(0, d.M*d.N))
		return
	}
	for i := range d.M {
		k.activate(d.Activation, c.Slice(i*ldc, i*ldc+d.N))
	}
}

func (k *kernels) activate(f device.Activation, c device.Buf) { k.Activate(f, c, c) }

// layBias sets, or adds to, every row of c.
func layBias(c, bias []float32, rows, ldc int, accumulate bool) {
	for i := range rows {
		line := c[i*ldc:][:len(bias)]
		if !accumulate {
			copy(line, bias)
			continue
		}
		for j, v := range bias {
			line[j] += v
		}
	}
}

// start returns where b lies; b is not empty.
func start(b device.Buf) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b.F32())) }
