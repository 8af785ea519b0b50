package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNEONIsChosen(t *testing.T) {
	for _, name := range []string{"", "auto", "neon"} {
		d, err := New(Config{Kernels: name})
		require.NoError(t, err)
		require.Equal(t, "cpu(neon)", d.Name())
		require.NoError(t, d.Close())
	}
	_, err := New(Config{Kernels: "avx2"})
	require.ErrorContains(t, err, "known here: auto, neon, portable")
}
