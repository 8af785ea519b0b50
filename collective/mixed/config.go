package mixed

import (
	"fmt"
	"slices"
	"time"

	"github.com/gradfusion/gradfusion/collective/shm"
	"github.com/gradfusion/gradfusion/collective/tcp"
)

// Config says who joins which world.
type Config struct {
	// TCP is this rank's as package tcp takes it, with the rank, the size, the
	// store, the namespace and the token that count for everything here. Its
	// Hosts, Beside and Lost are not the caller's.
	TCP tcp.Config
	// Machine keeps ranks apart that could share a host: those of different
	// Machines do not. Tests make several hosts of one so. Empty on all ranks:
	// the kernel decides.
	Machine string
	// Refused, where set, learns of connections to this host's shared memory
	// that were turned away. It is called from several goroutines.
	Refused func(err error)
}

func (c Config) check() error {
	switch t := c.TCP; {
	case t.Size < 1 || t.Rank < 0 || t.Rank >= t.Size:
		return fmt.Errorf("rank %d of %d", t.Rank, t.Size)
	case t.Size > 1 && t.Store == nil:
		return fmt.Errorf("rank %d of %d has no rendezvous store", t.Rank, t.Size)
	}
	return nil
}

func (c Config) key(what string, rank int) string {
	return fmt.Sprintf("%s/hosts/%s/%d", c.TCP.Namespace, what, rank)
}

func (c Config) timeout() time.Duration {
	if c.TCP.ConnectTimeout == 0 {
		return 60 * time.Second
	}
	return c.TCP.ConnectTimeout
}

// memory is how this rank joins the others of its host.
func (c Config) memory(host []int) shm.Config {
	return shm.Config{
		Rank: slices.Index(host, c.TCP.Rank), Size: len(host), Names: host,
		Store: c.TCP.Store, Namespace: fmt.Sprintf("%s/host/%d", c.TCP.Namespace, host[0]),
		Token: c.TCP.Token, ConnectTimeout: c.TCP.ConnectTimeout, Refused: c.Refused,
	}
}
