package mixed

import (
	"slices"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
)

// TestPaced: shared memory inside hosts and tcp across them, for which paced
// all-reduces are.
func TestPaced(t *testing.T) {
	commtest.Paced(t, func(tb testing.TB, hosts [][]int) []collective.Transport {
		n := 0
		for _, host := range hosts {
			n += len(host)
		}
		return world(tb, n, func(rank int) int {
			return slices.IndexFunc(hosts, func(host []int) bool { return slices.Contains(host, rank) })
		})
	})
}
