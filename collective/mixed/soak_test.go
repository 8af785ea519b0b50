package mixed

import (
	"flag"
	"net"
	"testing"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
)

var soakRanks = flag.String("ranks", "", "numbers of ranks of TestSoak, as 1..17,32; none: a sample")

func TestSoak(t *testing.T) {
	commtest.Soak(t, func(tb testing.TB, n int) []collective.Transport {
		return worldWith(tb, n, everyThird, func(c *Config) {
			// Many ranks on few processors are late, and come again.
			c.TCP.ConnectTimeout = 20 * time.Minute
			c.TCP.Refused = func(remote net.Addr, err error) { tb.Logf("refused %v: %v", remote, err) }
		})
	}, *soakRanks)
}
