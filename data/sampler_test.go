package data

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSamplerTakesEachSampleOnceAnEpoch(t *testing.T) {
	for _, c := range []struct{ samples, batch int }{{1, 1}, {10, 3}, {12, 4}, {12000, 64}, {97, 97}} {
		s, err := NewSampler(c.samples, c.batch, 3)
		require.NoError(t, err)
		for epoch := range 3 {
			var seen []int
			for i := range s.StepsPerEpoch() {
				step := epoch*s.StepsPerEpoch() + i
				before := len(seen)
				seen = s.Batch(seen, step)
				require.Equal(t, s.Size(step), len(seen)-before)
				require.Equal(t, epoch, s.Epoch(step))
			}
			slices.Sort(seen)
			require.Len(t, seen, c.samples)
			for i, v := range seen {
				require.Equal(t, i, v)
			}
		}
	}
}

func TestSamplerKeepsThePartialBatch(t *testing.T) {
	s, err := NewSampler(10, 4, 0)
	require.NoError(t, err)
	require.Equal(t, 3, s.StepsPerEpoch())
	require.Equal(t, []int{4, 4, 2, 4}, []int{s.Size(0), s.Size(1), s.Size(2), s.Size(3)})
}

// The order is part of what a checkpoint promises: it must never change.
func TestSamplerOrderIsPinned(t *testing.T) {
	s, err := NewSampler(10, 10, 1)
	require.NoError(t, err)
	require.Equal(t, []int{1, 8, 4, 2, 5, 3, 6, 0, 7, 9}, s.Batch(nil, 0))
	require.Equal(t, []int{5, 7, 2, 0, 8, 6, 1, 9, 4, 3}, s.Batch(nil, 1))
	require.Equal(t, []int{1, 8, 4, 2, 5, 3, 6, 0, 7, 9}, s.Batch(nil, 0), "going back")
	other, err := NewSampler(10, 10, 2)
	require.NoError(t, err)
	require.NotEqual(t, s.Batch(nil, 0), other.Batch(nil, 0))
}

// Every place gets every sample about equally often: chi-square with 8 x 8
// cells. 49 degrees of freedom have a mean of 49 and a deviation of 10; the
// seeds are fixed, so the bound of 100 cannot fail by chance.
func TestSamplerOrderIsEven(t *testing.T) {
	const n, epochs = 8, 8000
	s, err := NewSampler(n, n, 99)
	require.NoError(t, err)
	var counts [n][n]float64
	for epoch := range epochs {
		for place, sample := range s.Batch(nil, epoch) {
			counts[place][sample]++
		}
	}
	var chi float64
	for _, row := range counts {
		for _, k := range row {
			d := k - epochs/n
			chi += d * d / (epochs / n)
		}
	}
	require.Less(t, chi, 100.0)
}

func TestSamplerDoesNotAllocate(t *testing.T) {
	s, err := NewSampler(1000, 64, 1)
	require.NoError(t, err)
	indices := s.Batch(make([]int, 0, 64), 0)
	step := 0
	require.Zero(t, testing.AllocsPerRun(50, func() {
		indices = s.Batch(indices[:0], step)
		step++
	}))
}

func TestSamplerRefusesBatches(t *testing.T) {
	_, err := NewSampler(10, 11, 0)
	require.ErrorContains(t, err, "data.batch: 11 is out of range: the set has 10 training samples")
	_, err = NewSampler(10, 0, 0)
	require.ErrorContains(t, err, "data.batch: 0 is out of range")
	_, err = NewSampler(0, 1, 0)
	require.Error(t, err)
}

func TestStreamBelowStaysBelow(t *testing.T) {
	s := newStream(randomOrder, 1, 2, 3)
	for _, n := range []uint64{1, 2, 3, 1 << 40, 1<<63 + 1, 1<<64 - 1} {
		for range 200 {
			require.Less(t, s.below(n), n)
		}
	}
}

// The published outputs of SplitMix64 for the seed 1234567.
func TestStreamIsSplitMix64(t *testing.T) {
	s := stream{1234567}
	for _, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		require.Equal(t, want, s.next())
	}
}
