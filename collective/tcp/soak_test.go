package tcp

import (
	"flag"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
)

var soakRanks = flag.String("ranks", "", "numbers of ranks of TestSoak, as 1..17,32; none: a sample")

func TestSoak(t *testing.T) {
	commtest.Soak(t, func(tb testing.TB, n int) []collective.Transport {
		var ranks []collective.Transport
		for _, r := range world(tb, n) {
			ranks = append(ranks, r)
		}
		return ranks
	}, *soakRanks)
}
