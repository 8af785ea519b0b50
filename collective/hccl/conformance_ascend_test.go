//go:build ascend

package hccl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

// rankCounts are those under test; with -short, as under the race detector, some.
func rankCounts() []int {
	if testing.Short() {
		return []int{1, 3, 4}
	}
	return []int{1, 2, 3, 4, 8}
}

func TestConformance(t *testing.T) {
	commtest.Comms(t, func(tb testing.TB, n int) []collective.Comm { return start(tb, n).comms }, rankCounts()...)
}

// TestLayouts runs the suite with each layout of the libraries and each chip.
func TestLayouts(t *testing.T) {
	for _, layout := range []ascendsim.Layout{ascendsim.CANN8, ascendsim.CANN9, ascendsim.Old} {
		libraries, err := ascendsim.Build(t.TempDir(), layout, "")
		require.NoError(t, err)
		for _, chip := range []string{"910A", "910B"} {
			if layout == ascendsim.CANN8 && chip == "910B" {
				continue // TestConformance
			}
			t.Run(string(layout)+"/"+chip, func(t *testing.T) {
				out, err := ascendsim.Again(t, libraries, "^TestConformance$", "ASCENDSIM_CHIP="+chip)
				require.NoError(t, err, "%s", out)
			})
		}
	}
}
