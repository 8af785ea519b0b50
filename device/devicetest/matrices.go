package devicetest

import (
	"fmt"
	"math/bits"

	"github.com/gradfusion/gradfusion/device"
)

// productBound is for float32 sums in any order against float64: the error of
// K products grows as the square root of K in units of 6e-8; K is at most a few
// thousand here.
const productBound = 2e-6

func matrixExperiments() []experiment {
	var all []experiment
	for _, size := range [][3]int{
		{1, 1, 1}, {1, 16, 16}, {2, 3, 5}, {3, 17, 1}, {4, 15, 33}, {5, 1, 31}, {6, 16, 16}, {7, 33, 17}, {12, 48, 64},
		{13, 10, 100}, {16, 16, 0}, {97, 31, 48}, {98, 17, 513}, {5, 20, 1040}, {7, 20, 1027}, {1, 200, 785},
		{64, 64, 128}, {50, 35, 145}, {290, 48, 160}, {33, 785, 140}, {400, 50, 150}, {50, 1600, 130},
	} {
		for variant := range 16 {
			all = append(all, experiment{fmt.Sprintf("matmul %v/%d", size, variant), func(l *lab, k device.Kernels) {
				l.whole = bits.OnesCount(uint(variant))%2 == 0
				product(l, k, size, variant)
			}})
		}
	}
	for _, size := range [][3]int{{1, 1, 1}, {7, 33, 17}, {97, 31, 48}, {100, 20, 527}, {16, 16, 0}, {50, 35, 145}, {290, 48, 160}, {400, 50, 150}} {
		for variant := range 16 {
			all = append(all, experiment{fmt.Sprintf("matmul of 16 bits %v/%d", size, variant), func(l *lab, k device.Kernels) {
				halfProduct(l, k, size, variant)
			}})
		}
	}
	for _, size := range [][2]int{{1, 1}, {3, 10}, {64, 65}, {7, 200}, {9, 1000}, {0, 5}} {
		all = append(all, experiment{fmt.Sprintf("sum rows %v", size), func(l *lab, k device.Kernels) {
			for _, whole := range []bool{true, false} {
				l.whole = whole
				a := l.floats(size[0] * size[1])
				for _, accumulate := range []bool{false, true} {
					out := l.target(size[1], accumulate)
					k.SumRows(out, a, size[0], size[1], accumulate)
					l.keep("sums", out, productBound)
				}
			}
		}})
	}
	return all
}

// product varies transposition by the low two bits, then accumulation, then
// strides; bias and activation change with all of them.
func product(l *lab, k device.Kernels, size [3]int, variant int) {
	d := device.MatMul{M: size[0], N: size[1], K: size[2], TransA: variant&1 != 0, TransB: variant&2 != 0, Accumulate: variant&4 != 0}
	if variant&8 != 0 {
		lda, ldb, ldc := d.Strides()
		d.LDA, d.LDB, d.LDC = lda+3, ldb+5, ldc+1
	}
	d.Activation = device.Activation(variant / 3 % 4)
	if l.whole && d.Activation > device.ReLU {
		d.Activation = device.ReLU
	}
	an, bn, cn := d.Lens()
	a, b := l.floats(an), l.floats(bn)
	var bias device.Buf
	if variant%3 != 0 {
		bias = l.floats(d.N)
	}
	if variant > 11 && l.whole {
		l.poison(a)
		l.poison(b)
	}
	// The gaps between rows of c must stay, so all of c is compared.
	c := l.floats(cn)
	k.MatMul(d, c, a, b, bias)
	l.keep("c", c, productBound)
}

// halfProduct varies transposition by the low two bits, then the type of each
// side. Accumulation, strides, bias and activation are the business of product.
func halfProduct(l *lab, k device.Kernels, size [3]int, variant int) {
	d := device.MatMul{M: size[0], N: size[1], K: size[2], TransA: variant&1 != 0, TransB: variant&2 != 0}
	lda, ldb, _ := d.Strides()
	d.LDA, d.LDB = lda+variant/4, ldb+2
	an, bn, cn := d.Lens()
	types := [...]device.Type{device.F16, device.BF16, device.F32, device.F16}
	a, b := l.halves(types[variant/4], an), l.halves(types[(variant/4+1)%len(types)], bn)
	c := l.buffer(device.F32, cn)
	k.MatMul(d, c, a, b, device.Buf{})
	l.keep("c", c, productBound)
}

// halves returns n numbers of a type, rounded on the host.
func (l *lab) halves(t device.Type, n int) device.Buf {
	wide := l.floats(n)
	if t == device.F32 {
		return wide
	}
	b := l.buffer(t, n)
	for i, v := range wide.F32() {
		if t == device.F16 {
			b.U16()[i] = device.F32ToF16(v)
		} else {
			b.U16()[i] = device.F32ToBF16(v)
		}
	}
	return b
}
