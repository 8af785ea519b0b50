package main

import . "github.com/mmcloughlin/avo/reg"

// winogradForm is F(m x m, 3 x 3) in one dimension: with V = data(d), U =
// weight(g) and y = output(V U), y is the correlation of d with g. The others
// are the transposed maps.
type winogradForm struct {
	name            string
	outputs, points int // m, and m + 2
	constants       []float32

	data           func(e *transform, d []VecVirtual) []VecVirtual
	dataAdjoint    func(e *transform, v []VecVirtual) []VecVirtual
	output         func(e *transform, m []VecVirtual) []VecVirtual
	gradient       func(e *transform, y []VecVirtual) []VecVirtual // the adjoint of output
	weight         func(e *transform, g []VecVirtual) []VecVirtual
	weightGradient func(e *transform, u []VecVirtual) []VecVirtual
}

func winogradForms() []*winogradForm { return []*winogradForm{form2(), form4()} }

// form2 has the points 0, 1, -1 and infinity.
func form2() *winogradForm {
	return &winogradForm{
		name: "2", outputs: 2, points: 4, constants: []float32{0.5},
		data: func(e *transform, d []VecVirtual) []VecVirtual {
			return []VecVirtual{e.sub(d[0], d[2]), e.add(d[1], d[2]), e.sub(d[2], d[1]), e.sub(d[1], d[3])}
		},
		dataAdjoint: func(e *transform, v []VecVirtual) []VecVirtual {
			zero := e.register()
			VXOR(zero)
			d1 := e.add(e.sub(v[1], v[2]), v[3])
			d2 := e.sub(e.add(v[1], v[2]), v[0])
			return []VecVirtual{v[0], d1, d2, e.sub(zero, v[3])}
		},
		output: func(e *transform, m []VecVirtual) []VecVirtual {
			return []VecVirtual{e.add(m[0], e.add(m[1], m[2])), e.sub(e.sub(m[1], m[2]), m[3])}
		},
		gradient: func(e *transform, y []VecVirtual) []VecVirtual {
			zero := e.register()
			VXOR(zero)
			return []VecVirtual{y[0], e.add(y[0], y[1]), e.sub(y[0], y[1]), e.sub(zero, y[1])}
		},
		weight: func(e *transform, g []VecVirtual) []VecVirtual {
			even := e.mul(0.5, e.add(g[0], g[2]))
			odd := e.mul(0.5, g[1])
			return []VecVirtual{g[0], e.add(even, odd), e.sub(even, odd), g[2]}
		},
		weightGradient: func(e *transform, u []VecVirtual) []VecVirtual {
			even := e.mul(0.5, e.add(u[1], u[2]))
			odd := e.mul(0.5, e.sub(u[1], u[2]))
			return []VecVirtual{e.add(u[0], even), odd, e.add(u[3], even)}
		},
	}
}

// form4 has the points 0, +-a, +-b and infinity: a = 3/4 and b = 3/2 halve the
// rounding errors of 1 and 2, and their powers here are exact.
func form4() *winogradForm {
	const (
		a, b   = 0.75, 1.5
		a2, b2 = a * a, b * b
		a3, b3 = a2 * a, b2 * b
		n0     = 1 / (a2 * b2)
		na     = 1 / (2 * a2 * (a2 - b2))
		nb     = 1 / (2 * b2 * (b2 - a2))
	)
	return &winogradForm{
		name: "4", outputs: 4, points: 6,
		constants: []float32{a, b, a2, b2, a3, b3, a2 * b2, a2 + b2, n0, na, nb, na * a, nb * b, na * a2, nb * b2},
		data: func(e *transform, d []VecVirtual) []VecVirtual {
			outer := func(x, y, z VecVirtual) VecVirtual {
				return e.fnma(a2+b2, y, e.fma(a2*b2, x, e.copy(z)))
			}
			inner := func(square, p float32) (VecVirtual, VecVirtual) {
				even, odd := e.fnma(square, d[2], e.copy(d[4])), e.fnma(square, d[1], e.copy(d[3]))
				return e.fma(p, odd, e.copy(even)), e.fnma(p, odd, even)
			}
			v0, v5 := outer(d[0], d[2], d[4]), outer(d[1], d[3], d[5])
			v1, v2 := inner(b2, a)
			v3, v4 := inner(a2, b)
			return []VecVirtual{v0, v1, v2, v3, v4, v5}
		},
		dataAdjoint: func(e *transform, v []VecVirtual) []VecVirtual {
			sa, sb := e.add(v[1], v[2]), e.add(v[3], v[4])
			da, db := e.mul(a, e.sub(v[1], v[2])), e.mul(b, e.sub(v[3], v[4]))
			d0 := e.mul(a2*b2, v[0])
			d1 := e.fnma(a2, db, e.fnma(b2, da, e.mul(a2*b2, v[5])))
			d4 := e.add(v[0], e.add(sa, sb))
			d3 := e.fnma(a2+b2, v[5], e.add(da, db))
			d2 := e.register()
			VXOR(d2)
			d2 = e.fnma(a2, sb, e.fnma(b2, sa, e.fnma(a2+b2, v[0], d2)))
			return []VecVirtual{d0, d1, d2, d3, d4, v[5]}
		},
		output: func(e *transform, m []VecVirtual) []VecVirtual {
			sa, sb := e.add(m[1], m[2]), e.add(m[3], m[4])
			da, db := e.sub(m[1], m[2]), e.sub(m[3], m[4])
			y0 := e.add(m[0], e.add(sa, sb))
			y1 := e.fma(b, db, e.mul(a, da))
			y2 := e.fma(b2, sb, e.mul(a2, sa))
			y3 := e.fma(b3, db, e.fma(a3, da, e.copy(m[5])))
			return []VecVirtual{y0, y1, y2, y3}
		},
		gradient: func(e *transform, y []VecVirtual) []VecVirtual {
			inner := func(square, p float32) (VecVirtual, VecVirtual) {
				even, odd := e.fma(square, y[2], e.copy(y[0])), e.fma(square, y[3], e.copy(y[1]))
				return e.fma(p, odd, e.copy(even)), e.fnma(p, odd, even)
			}
			v1, v2 := inner(a2, a)
			v3, v4 := inner(b2, b)
			return []VecVirtual{y[0], v1, v2, v3, v4, y[3]}
		},
		weight: func(e *transform, g []VecVirtual) []VecVirtual {
			pair := func(n, np, nsquare float32) (VecVirtual, VecVirtual) {
				even := e.fma(nsquare, g[2], e.mul(n, g[0]))
				return e.fma(np, g[1], e.copy(even)), e.fnma(np, g[1], even)
			}
			u0 := e.mul(n0, g[0])
			u1, u2 := pair(na, na*a, na*a2)
			u3, u4 := pair(nb, nb*b, nb*b2)
			return []VecVirtual{u0, u1, u2, u3, u4, g[2]}
		},
		weightGradient: func(e *transform, u []VecVirtual) []VecVirtual {
			sa, sb := e.add(u[1], u[2]), e.add(u[3], u[4])
			da, db := e.sub(u[1], u[2]), e.sub(u[3], u[4])
			g0 := e.fma(nb, sb, e.fma(na, sa, e.mul(n0, u[0])))
			g1 := e.fma(nb*b, db, e.mul(na*a, da))
			g2 := e.fma(nb*b2, sb, e.fma(na*a2, sa, e.copy(u[5])))
			return []VecVirtual{g0, g1, g2}
		},
	}
}
