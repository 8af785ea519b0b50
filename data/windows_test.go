package data

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// counting is a run of n tokens that are their own positions.
func counting(n int, wide bool) Tokens {
	var t Tokens
	for i := range n {
		if wide {
			t.wide = append(t.wide, uint16(i))
		} else {
			t.bytes = append(t.bytes, byte(i))
		}
	}
	return t
}

// In training each window is there once an epoch, its targets are the tokens
// that follow, and the order depends on the seed and the epoch alone.
func TestTrainingWindows(t *testing.T) {
	const n, size = 103, 5 // 20 windows, and two targets that make none
	for _, wide := range []bool{false, true} {
		w, err := NewWindows(counting(n, wide), size, true)
		require.NoError(t, err)
		require.Equal(t, 20, w.Len())
		s, err := NewSampler(w.Len(), 6, 3)
		require.NoError(t, err)
		orders := map[int][]int32{} // by epoch: the first token of each window
		for _, ranks := range []int{1, 2, 3} {
			got := map[int][]int32{}
			starts := make([]map[int][]int32, ranks)
			for rank := range ranks {
				starts[rank] = map[int][]int32{}
				for p := range s.Parts(0, 3*s.StepsPerEpoch(), 2, ranks, rank) {
					to := w.Sizes().of(len(p.Indices))
					require.NoError(t, w.Fill(to, p.Indices, p.Epoch))
					for i := range p.Indices {
						first := to.Tokens[i*size]
						for k := range int32(size) {
							require.Equal(t, first+k, to.Tokens[i*size+int(k)])
							require.Equal(t, first+k+1, to.Y[i*size+int(k)])
						}
						starts[rank][p.Step] = append(starts[rank][p.Step], first)
					}
				}
			}
			for step := range 3 * s.StepsPerEpoch() {
				for rank := range ranks {
					got[s.Epoch(step)] = append(got[s.Epoch(step)], starts[rank][step]...)
				}
			}
			if ranks == 1 {
				orders = got
			}
			require.Equal(t, orders, got)
		}
		for _, order := range orders {
			require.Len(t, order, 20)
			seen := map[int32]bool{}
			for _, first := range order {
				require.Zero(t, first%size)
				seen[first] = true
			}
			require.Len(t, seen, 20)
		}
		require.NotEqual(t, orders[0], orders[1])
	}
}

// In evaluation each token but the first is a target exactly once over all
// ranks, whatever their number.
func TestTestingWindowsCountEachTokenOnce(t *testing.T) {
	for _, n := range []int{2, 5, 6, 7, 103} {
		w, err := NewWindows(counting(n, false), 5, false)
		require.NoError(t, err)
		for _, ranks := range []int{1, 2, 3, 7} {
			counts := make([]int, n)
			for rank := range ranks {
				for p := range EvalParts(w.Len(), 2, ranks, rank) {
					to := w.Sizes().of(len(p.Indices))
					for i := range to.Tokens {
						to.Tokens[i] = 99 // of the micro-batch before
					}
					require.NoError(t, w.Fill(to, p.Indices, 0))
					for i, y := range to.Y {
						if y == Ignore {
							continue
						}
						counts[y]++
						require.Equal(t, y-1, to.Tokens[i])
					}
				}
			}
			require.Zero(t, counts[0])
			for token, k := range counts[1:] {
				require.Equal(t, 1, k, "%d tokens, %d ranks: token %d", n, ranks, token+1)
			}
		}
	}
}

func TestPlacesBeyondTheEndAreEmpty(t *testing.T) {
	w, err := NewWindows(counting(8, false), 5, false)
	require.NoError(t, err)
	to := Samples{Tokens: []int32{9, 9, 9, 9, 9}, Y: []int32{9, 9, 9, 9, 9}}
	require.NoError(t, w.Fill(to, []int{1}, 0))
	require.Equal(t, Samples{Tokens: []int32{5, 6, 7, 0, 0}, Y: []int32{6, 7, Ignore, Ignore, Ignore}}, to)
}

func TestWindowMistakes(t *testing.T) {
	_, err := NewWindows(counting(5, false), 5, true)
	require.ErrorContains(t, err, "5 tokens make no window of 5 and the token after it")
	_, err = NewWindows(counting(1, false), 5, false)
	require.Error(t, err)
	_, err = NewWindows(counting(5, false), 0, true)
	require.ErrorContains(t, err, "windows of 0 tokens")
	w, err := NewWindows(counting(11, false), 5, true)
	require.NoError(t, err)
	require.ErrorContains(t, w.Fill(w.Sizes().of(1), []int{2}, 0), "window 2 of a text of 2")
	require.ErrorContains(t, w.Fill(w.Sizes().of(1), []int{-1}, 0), "window -1")
	require.ErrorContains(t, w.Fill(w.Sizes().of(1), []int{0, 1}, 0), "do not fit")
}

func TestLoaderOfWindowsDoesNotAllocate(t *testing.T) {
	w, err := NewWindows(counting(5000, true), 16, true)
	require.NoError(t, err)
	s, err := NewSampler(w.Len(), 32, 1)
	require.NoError(t, err)
	l, err := NewLoader(w, s.Parts(0, 1<<30, 8, 1, 0), LoaderConfig{Micro: 8})
	require.NoError(t, err)
	defer l.Close()
	require.Less(t, testing.AllocsPerRun(500, func() {
		b, err := l.Next(context.Background())
		if err != nil {
			panic(err)
		}
		l.Release(b)
	}), 0.5) // the runtime may grow its own lists of waiters
}

func TestLoaderGivesShortMicroBatches(t *testing.T) {
	w, err := NewWindows(counting(36, false), 5, true)
	require.NoError(t, err)
	l, err := NewLoader(w, EvalParts(w.Len(), 4, 1, 0), LoaderConfig{Micro: 4})
	require.NoError(t, err)
	defer l.Close()
	for _, windows := range []int{4, 3} {
		b, err := l.Next(context.Background())
		require.NoError(t, err)
		require.Len(t, b.Tokens, windows*5)
		require.Len(t, b.Y, windows*5)
		require.Empty(t, b.X)
		l.Release(b)
	}
	_, err = l.Next(context.Background())
	require.True(t, errors.Is(err, io.EOF))
}
