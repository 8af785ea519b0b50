package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
)

// Memory that ends with its last element, as a caller's own slice may: columns
// that a panel has and the matrix has not lie behind it. The race detector's
// build notices a pointer that leaves its object.
func TestProductsIntoTightMemory(t *testing.T) {
	const rows, depth = 4, 5
	for _, kernels := range []string{"portable", "auto"} {
		d, err := New(Config{Kernels: kernels})
		require.NoError(t, err)
		for columns := 1; columns <= 2*tileColumns+1; columns++ {
			a, b := make([]float32, rows*depth), make([]float32, depth*columns)
			for i := range a {
				a[i] = float32(i % 7)
			}
			for i := range b {
				b[i] = float32(i % 5)
			}
			want := make([]float32, rows*columns)
			for i := range want {
				for k := range depth {
					want[i] += a[i/columns*depth+k] * b[k*columns+i%columns] // small integers: exact
				}
			}
			got := make([]float32, rows*columns)
			d.Kernels().MatMul(device.MatMul{M: rows, N: columns, K: depth}, device.FromF32(got), device.FromF32(a), device.FromF32(b), device.Buf{})
			require.Equal(t, want, got, "%s, %d columns", kernels, columns)
		}
		require.NoError(t, d.Close())
	}
}
