package launch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSharesPartTheProcessors(t *testing.T) {
	for n := 1; n <= 12; n++ {
		for ranks := 1; ranks <= n; ranks++ {
			var all []processor
			for i := range n {
				all = append(all, processor{i, 0, i})
			}
			var seen []int
			for rank := range ranks {
				own := share(all, rank, ranks)
				require.GreaterOrEqual(t, len(own), n/ranks)
				require.LessOrEqual(t, len(own), n/ranks+1)
				seen = append(seen, own...)
			}
			for i := range n {
				require.Equal(t, i, seen[i], "%d ranks of %d processors", ranks, n)
			}
		}
	}
}

func TestAShareHasWholeCores(t *testing.T) {
	// Two sockets of two cores of two threads, as some systems number them.
	var all []processor
	for i := range 8 {
		all = append(all, processor{number: i, socket: i / 2 % 2, core: i % 2})
	}
	require.Equal(t, []int{0, 4, 1, 5}, share(all, 0, 2))
	require.Equal(t, []int{2, 6, 3, 7}, share(all, 1, 2))
	require.Equal(t, []int{1, 5}, share(all, 1, 4))
}

func TestTooFewProcessors(t *testing.T) {
	all, err := processors()
	require.NoError(t, err)
	if len(all) == 0 {
		return // a system that binds nothing
	}
	_, err = KeepApart(Place{LocalRank: 0, LocalSize: len(all) + 1}, 1)
	var few *TooFewError
	require.ErrorAs(t, err, &few)
	require.Equal(t, TooFewError{Ranks: len(all) + 1, Each: 1, Processors: len(all)}, *few)
	n, err := KeepApart(Place{LocalSize: 1}, 1)
	require.NoError(t, err)
	require.Equal(t, len(all), n)
}
