package cpu

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// The portable vector kernels define the operations and their order. Assembly
// runs the same ones on eight elements at once and calls these for the rest, so
// that an element has the same bits wherever it stands. Products are converted
// to float32 before a sum, or arm64 would fuse the two.

func portableTranspose(dst, src []float32, stride, n int) {
	for i := range device.Block {
		for k, v := range src[i*stride : i*stride+n] {
			dst[k*device.Block+i] = v
		}
	}
}

func portableLines(dst, src []float32, stride, next, rows, count int) {
	for i := range rows {
		for j := range count {
			*(*[device.Block]float32)(dst[j*next+i*device.Block:]) = *(*[device.Block]float32)(src[i*stride+j*device.Block:])
		}
	}
}

func portableTurn(c, src, bias []float32, stride, count, width, flags int) {
	for i := range count {
		for j, v := range c[i*stride : i*stride+width] {
			sum := src[j*device.Block+i]
			if flags&flagAccumulate != 0 {
				sum += v
			}
			if bias != nil {
				sum += bias[j]
			}
			if flags&flagReLU != 0 && sum < 0 {
				sum = 0
			}
			c[i*stride+j] = sum
		}
	}
}

func portableAdd(dst, a, b []float32) {
	for i, v := range a {
		dst[i] = v + b[i]
	}
}

func portableMul(dst, a, b []float32) {
	for i, v := range a {
		dst[i] = v * b[i]
	}
}

// portableMax returns NaN when either side is NaN.
func portableMax(dst, a, b []float32) {
	for i, v := range a {
		if !(v > b[i] || v != v) {
			v = b[i]
		}
		dst[i] = v
	}
}

func portableMin(dst, a, b []float32) {
	for i, v := range a {
		if !(v < b[i] || v != v) {
			v = b[i]
		}
		dst[i] = v
	}
}

func portableScale(dst, a []float32, s float32) {
	for i, v := range a {
		dst[i] = v * s
	}
}

// portableReLU keeps NaN and -0.
func portableReLU(y, x []float32) {
	for i, v := range x {
		if v < 0 {
			v = 0
		}
		y[i] = v
	}
}

// portableReLUBackward passes dy where y is above zero or NaN.
func portableReLUBackward(dx, dy, y []float32) {
	for i, v := range dy {
		if y[i] <= 0 {
			v = 0
		}
		dx[i] = v
	}
}

func portableReLUBackwardAdd(dx, dy, y []float32) {
	for i, v := range dy {
		if y[i] <= 0 {
			v = 0
		}
		dx[i] += v
	}
}

// sgdNumbers are the constants of an SGD step. The assembly reads them by
// position.
type sgdNumbers struct {
	scale, decay, rate, momentum, keep float32
	nesterov                           bool
}

func portableSGD(w, grad []float32, p *sgdNumbers) {
	for i, g := range grad {
		g = float32(p.scale*g) + float32(p.decay*w[i])
		w[i] -= float32(p.rate * g)
	}
}

func portableSGDMomentum(w, grad, momentum []float32, p *sgdNumbers) {
	for i, g := range grad {
		g = float32(p.scale*g) + float32(p.decay*w[i])
		m := float32(p.momentum*momentum[i]) + float32(p.keep*g)
		momentum[i] = m
		if p.nesterov {
			m = g + float32(p.momentum*m)
		}
		w[i] -= float32(p.rate * m)
	}
}

// firstMomentum is the step in which the momentum starts as the gradient: what a
// later step makes of a momentum of zeros of which it keeps -0, to which g adds up
// to g, of either sign of zero.
func (set *kernelSet) firstMomentum(w, grad, momentum []float32, p *sgdNumbers) {
	const piece = 4096 // in the first-level cache
	if p.nesterov {
		portableFirstMomentum(w, grad, momentum, p)
		return
	}
	first := *p
	first.momentum, first.keep = float32(math.Copysign(0, -1)), 1
	for len(w) > 0 {
		n := min(len(w), piece)
		clear(momentum[:n])
		set.sgdMomentum(w[:n], grad[:n], momentum[:n], &first)
		w, grad, momentum = w[n:], grad[n:], momentum[n:]
	}
}

// portableFirstMomentum is firstMomentum as it is written.
func portableFirstMomentum(w, grad, momentum []float32, p *sgdNumbers) {
	for i, g := range grad {
		g = float32(p.scale*g) + float32(p.decay*w[i])
		momentum[i] = g
		if p.nesterov {
			g += float32(p.momentum * g)
		}
		w[i] -= float32(p.rate * g)
	}
}

// adamNumbers are the constants of an Adam step. The assembly reads them by
// position.
type adamNumbers struct {
	scale, decay, shrink, beta1, rest1, beta2, rest2, root, epsilon, rate float32
}

func portableAdam(w, grad, m, v []float32, p *adamNumbers) {
	for i, g := range grad {
		g = float32(p.scale*g) + float32(p.decay*w[i])
		mi := float32(p.beta1*m[i]) + float32(p.rest1*g)
		vi := float32(p.beta2*v[i]) + float32(float32(p.rest2*g)*g)
		m[i], v[i] = mi, vi
		below := float32(float32(math.Sqrt(float64(vi)))*p.root) + p.epsilon
		w[i] = float32(w[i]*p.shrink) - float32(p.rate*float32(mi/below))
	}
}

// portableSumSquares keeps 16 sums, one for each position modulo 16, and adds
// them pairwise. Squares of float32 are exact in float64.
func portableSumSquares(out []float64, x []float32) {
	for b := range out {
		var s [16]float64
		for i, v := range x[b*device.NormBlock : (b+1)*device.NormBlock] {
			s[i%16] += float64(float64(v) * float64(v))
		}
		for i := range 4 {
			s[i] = (s[i] + s[i+4]) + (s[i+8] + s[i+12])
		}
		out[b] = (s[0] + s[2]) + (s[1] + s[3])
	}
}
