package wire

import "math"

// The arithmetic of PowerSGD (Vogels, Karimireddy and Jaggi 2019), which sends a
// gradient M of rows x columns as factors of a small rank:
//
//	P = M Q, summed over the ranks, then made orthonormal
//	Q = M' P, summed over the ranks
//	M = P Q'
//
// A factor is stored by columns: vector k of P is rows numbers long and starts at
// k rows. All is computed in one order, so that ranks that start equal stay so.

// ProjectRows sets p = M q: p has rank vectors of rows numbers, q rank vectors of
// columns.
func ProjectRows(p, m, q []float32, rows, columns, rank int) {
	for i := range rows {
		row := m[i*columns : (i+1)*columns]
		for k := range rank {
			p[k*rows+i] = dot(row, q[k*columns:(k+1)*columns])
		}
	}
}

// ProjectColumns sets q = M' p.
func ProjectColumns(q, m, p []float32, rows, columns, rank int) {
	clear(q[:rank*columns])
	for i := range rows {
		row := m[i*columns : (i+1)*columns]
		for k := range rank {
			addScaled(q[k*columns:(k+1)*columns], row, p[k*rows+i])
		}
	}
}

// Expand sets m = p q', or m = m - p q'.
func Expand(m, p, q []float32, rows, columns, rank int, subtract bool) {
	for i := range rows {
		row := m[i*columns : (i+1)*columns]
		if !subtract {
			clear(row)
		}
		for k := range rank {
			s := p[k*rows+i]
			if subtract {
				s = -s
			}
			addScaled(row, q[k*columns:(k+1)*columns], s)
		}
	}
}

// dotLanes is how many sums dot has, of which each takes every dotLanes-th product.
const dotLanes = 32

func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var sums [dotLanes]float32
	at := chosenKernels().dot(&sums, a, b)
	for ; at+dotLanes <= len(a); at += dotLanes {
		for i := range sums {
			sums[i] += float32(a[at+i] * b[at+i])
		}
	}
	total := float32(0)
	for _, s := range sums {
		total += s
	}
	for ; at < len(a); at++ {
		total += float32(a[at] * b[at])
	}
	return total
}

func addScaled(dst, src []float32, s float32) {
	src = src[:len(dst)]
	for i := chosenKernels().addScaled(dst, src, s); i < len(dst); i++ {
		dst[i] += float32(src[i] * s)
	}
}

// Orthonormalise makes rank vectors of n numbers orthonormal (Gram and Schmidt,
// each vector twice, which keeps the loss of orthogonality at rounding). A vector
// that depends on those before it becomes zero.
func Orthonormalise(p []float32, n, rank int) {
	for k := range rank {
		v := p[k*n : (k+1)*n]
		before := norm(v)
		for range 2 {
			for j := range k {
				u := p[j*n : (j+1)*n]
				addScaled(v, u, -dot(v, u))
			}
		}
		length := norm(v)
		if length <= 1e-5*before { // what is left is rounding
			clear(v)
			continue
		}
		for i := range v {
			v[i] = float32(float64(v[i]) / length)
		}
	}
}

func norm(v []float32) float64 {
	s := 0.0
	for _, x := range v {
		s += float64(float64(x) * float64(x))
	}
	return math.Sqrt(s)
}

// Renew fills the vectors of a factor that say nothing (zero, or not finite) with
// numbers from -1 to 1 that depend on the seed: a factor of zeros would stay one
// for ever.
func Renew(q []float32, n, rank int, seed uint64) {
	for k := range rank {
		v := q[k*n : (k+1)*n]
		if length := norm(v); length > 0 && !math.IsInf(length, 0) {
			continue // NaN is not above 0
		}
		r := newRandom(Seed(seed, uint64(k)))
		for i := range v {
			v[i] = float32(int32(r.at(uint32(i)))) * (1.0 / (1 << 31))
		}
	}
}
