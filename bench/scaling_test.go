package bench

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScale: runs alternate, medians are taken, and the base is the first.
func TestScale(t *testing.T) {
	var order []int
	rates := map[int][]float64{2: {100, 110, 90}, 4: {150, 300, 160}, 8: {320, 10, 320}}
	all, err := Scale(t.Context(), Scaling{Ranks: []int{2, 4, 8}, Threads: 3, Train: func(_ context.Context, ranks, run int) (Trained, error) {
		order = append(order, ranks)
		tr := Trained{Batch: 16 * ranks, Steps: 10, SamplesPerSec: rates[ranks][run-1], StepMs: float64(run), ExposedMs: 2 * float64(run)}
		if ranks > 2 {
			overlap := 10 * float64(run)
			tr.OverlapPct = &overlap
		}
		return tr, nil
	}})
	require.NoError(t, err)
	require.Equal(t, []int{2, 4, 8, 2, 4, 8, 2, 4, 8}, order)
	overlap := 20.0
	require.Equal(t, []Scaled{
		{Ranks: 2, Threads: 3, Batch: 32, Steps: 10, Runs: 3, SamplesPerSec: 100, StepMs: 2, ExposedMs: 4, Speedup: 1, Ideal: 1, Efficiency: 1},
		{Ranks: 4, Threads: 3, Batch: 64, Steps: 10, Runs: 3, SamplesPerSec: 160, StepMs: 2, ExposedMs: 4, OverlapPct: &overlap, Speedup: 1.6, Ideal: 2, Efficiency: 0.8},
		{Ranks: 8, Threads: 3, Batch: 128, Steps: 10, Runs: 3, SamplesPerSec: 320, StepMs: 2, ExposedMs: 4, OverlapPct: &overlap, Speedup: 3.2, Ideal: 4, Efficiency: 0.8},
	}, all)
	var b strings.Builder
	require.NoError(t, WriteScaling(&b, "resnet20", all, 4))
	require.NoError(t, WriteScalingJSON(&b, all))
	golden(t, "scaling.txt", b.String())
}

func TestScaleStopsAtAnError(t *testing.T) {
	failed := errors.New("no")
	_, err := Scale(t.Context(), Scaling{Ranks: []int{1}, Train: func(context.Context, int, int) (Trained, error) { return Trained{}, failed }})
	require.ErrorIs(t, err, failed)
}
