package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
)

// The parts of a product cover its rows and panels, none is empty, and where rows
// suffice all threads have equally many.
func TestProductPartsCover(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		rows, columns, threads := 1+r.IntN(4096), 1+r.IntN(4096), 1+r.IntN(70)
		q := productTask{left: side{count: rows}, panels: panels(columns)}
		q.d.K = 1 << r.IntN(18) // a long left side is cut anew for each group of panels
		q.cutParts(threads)
		require.Zero(t, q.rowsOf%partRows)
		require.LessOrEqual(t, q.rowsOf, productPartsRows)
		require.GreaterOrEqual(t, q.blocks*q.rowsOf, rows)
		require.Less(t, (q.blocks-1)*q.rowsOf, rows, "%d x %d, %d threads, seed %d", rows, columns, threads, seed)
		require.LessOrEqual(t, q.groups, q.panels)
		require.LessOrEqual(t, (q.panels+q.groups-1)/q.groups, productPartsPanels)
		require.Equal(t, q.groups*q.blocks, q.parts)
	}
	for _, c := range []struct{ rows, columns, threads, parts int }{
		{384, 384, 2, 2}, {384, 1536, 2, 4}, {1152, 384, 2, 4}, {1536, 384, 2, 4}, {256, 384, 2, 2}, {1024, 64, 2, 4}, {64, 1024, 2, 4}, {2048, 384, 4, 8},
		{384, 384, 4, 12}, {2048, 1152, 2, 18},
	} {
		q := productTask{left: side{count: c.rows}, panels: panels(c.columns)}
		q.cutParts(c.threads)
		require.Equal(t, c.parts, q.parts, "%+v", c)
		require.Zero(t, q.parts%c.threads)
	}
}

func TestColumnsEach(t *testing.T) {
	for _, c := range []struct{ columns, threads, each int }{
		{384, 1, 384}, {384, 2, 192}, {384, 3, 128}, {384, 16, 64}, {1536, 2, 768}, {1152, 2, 576}, {2048, 2, 512}, {1000, 1, 512}, {100, 2, 64}, {1, 4, 64},
	} {
		require.Equal(t, c.each, columnsEach(c.columns, c.threads), "%+v", c)
	}
}

// What is beside an infinity has the same bits whatever the number of threads, and
// infinities and NaN are where vectors have them.
func TestProductWithAnInfinity(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, m := range []device.MatMul{
		{M: 198, N: 168, K: 456, TransB: true}, {M: 500, N: 40, K: 130, TransA: true, Activation: device.ReLU},
		{M: 60, N: 700, K: 150, Accumulate: true}, {M: 48, N: 900, K: 129, TransB: true, Accumulate: true},
	} {
		an, bn, cn := m.Lens()
		a, b, c := make([]float32, an), make([]float32, bn), make([]float32, cn)
		bias := make([]float32, m.N)
		for _, x := range [][]float32{a, b, c, bias} {
			for i := range x {
				x[i] = r.Float32() - 0.5
			}
		}
		a[r.IntN(an)], b[r.IntN(bn)] = float32(math.Inf(1)), float32(math.NaN())
		product := func(config Config) []float32 {
			d, err := New(config)
			require.NoError(t, err)
			defer d.Close()
			out := append([]float32(nil), c...)
			d.Kernels().MatMul(m, device.FromF32(out), device.FromF32(a), device.FromF32(b), device.FromF32(bias))
			return out
		}
		want := product(Config{Kernels: "portable"})
		one := product(Config{})
		for i, v := range want {
			require.Equal(t, v-v != 0, one[i]-one[i] != 0, "element %d of %+v, seed %d", i, m, seed)
			require.Equal(t, v != v, one[i] != one[i], "element %d of %+v, seed %d", i, m, seed)
		}
		for _, threads := range []int{2, 3, 7, 16} {
			sameBits(t, one, product(Config{Threads: threads}), "threads", threads)
		}
	}
}
