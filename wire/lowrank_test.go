package wire

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func product(p, q []float32, rows, columns, rank int) []float64 {
	m := make([]float64, rows*columns)
	for i := range rows {
		for j := range columns {
			for k := range rank {
				m[i*columns+j] += float64(p[k*rows+i]) * float64(q[k*columns+j])
			}
		}
	}
	return m
}

// Small integers are exact in any order: the naive products are the same.
func TestProjections(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 2}, {16, 9, 4}, {7, 31, 3}} {
		rows, columns, rank := s[0], s[1], s[2]
		draw := func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(r.IntN(9) - 4)
			}
			return v
		}
		m, p, q := draw(rows*columns), make([]float32, rank*rows), draw(rank*columns)
		ProjectRows(p, m, q, rows, columns, rank)
		for k := range rank {
			for i := range rows {
				want := float32(0)
				for j := range columns {
					want += m[i*columns+j] * q[k*columns+j]
				}
				require.Equal(t, want, p[k*rows+i])
			}
		}
		p = draw(rank * rows)
		ProjectColumns(q, m, p, rows, columns, rank)
		for k := range rank {
			for j := range columns {
				want := float32(0)
				for i := range rows {
					want += m[i*columns+j] * p[k*rows+i]
				}
				require.Equal(t, want, q[k*columns+j])
			}
		}
		q = draw(rank * columns)
		full, rest := make([]float32, len(m)), append([]float32(nil), m...)
		full[0] = 99
		Expand(full, p, q, rows, columns, rank, false)
		Expand(rest, p, q, rows, columns, rank, true)
		for i, want := range product(p, q, rows, columns, rank) {
			require.Equal(t, float32(want), full[i])
			require.Equal(t, m[i]-full[i], rest[i])
		}
	}
}

// Orthonormal to a few roundings of float32, also from nearly parallel vectors;
// dependent ones become zero.
func TestOrthonormalise(t *testing.T) {
	const n, rank = 100, 4
	r := rand.New(rand.NewPCG(2, 3))
	p := make([]float32, n*rank)
	for i := range n {
		x := r.NormFloat64()
		p[i], p[n+i], p[3*n+i] = float32(x), float32(x+1e-3*r.NormFloat64()), float32(r.NormFloat64())
		p[2*n+i] = 2 * p[i]
	}
	Orthonormalise(p, n, rank)
	for a := range rank {
		for b := range rank {
			want := 0.0
			if a == b && a != 2 {
				want = 1
			}
			got := 0.0
			for i := range n {
				got += float64(p[a*n+i]) * float64(p[b*n+i])
			}
			require.InDelta(t, want, got, 1e-5, "%d %d", a, b)
		}
	}
}

// A matrix of rank 2 is found wholly within two rounds from a random factor: the
// first finds its columns' space.
func TestPowerIterationFindsTheFactors(t *testing.T) {
	const rows, columns, rank = 40, 30, 2
	r := rand.New(rand.NewPCG(4, 3))
	a, b := make([]float32, rows*rank), make([]float32, columns*rank)
	for i := range a {
		a[i] = float32(r.NormFloat64())
	}
	for i := range b {
		b[i] = float32(r.NormFloat64())
	}
	m := make([]float32, rows*columns)
	Expand(m, a, b, rows, columns, rank, false)
	p, q := make([]float32, rows*rank), make([]float32, columns*rank)
	Renew(q, columns, rank, 1)
	ProjectRows(p, m, q, rows, columns, rank)
	Orthonormalise(p, rows, rank)
	ProjectColumns(q, m, p, rows, columns, rank)
	rest := append([]float32(nil), m...)
	Expand(rest, p, q, rows, columns, rank, true)
	require.Less(t, norm(rest), 1e-5*norm(m))
}

func TestRenew(t *testing.T) {
	q := []float32{1, 2, 0, 0, float32(math.NaN()), 1, float32(math.Inf(1)), 0}
	Renew(q, 2, 4, 7)
	require.Equal(t, []float32{1, 2}, q[:2])
	for _, v := range q[2:] {
		require.True(t, v != 0 && v > -1 && v < 1)
	}
	again := make([]float32, 8)
	Renew(again, 2, 4, 7)
	require.Equal(t, q[2:], again[2:])
}
