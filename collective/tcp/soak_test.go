package tcp

import (
	"flag"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
)

var soakRanks = flag.String("ranks", "", "numbers of ranks of TestSoak, as 1..17,32; none: a sample")

func TestSoak(t *testing.T) {
	commtest.Soak(t, func(tb testing.TB, n int) []collective.Transport {
		joined, err := join(tb, n, func(c *Config) {
			// Many ranks on few processors are late, and come again.
			c.ConnectTimeout = 20 * time.Minute
			c.Refused = func(remote net.Addr, err error) { tb.Logf("rank %d refused %v: %v", c.Rank, remote, err) }
		})
		require.NoError(tb, err)
		var ranks []collective.Transport
		for _, r := range joined {
			ranks = append(ranks, r)
		}
		return ranks
	}, *soakRanks)
}
