package tcp

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Store is where ranks publish their addresses; *store.Client is one. Wait
// returns when all keys are there; its time-out may be a *store.WaitError.
type Store interface {
	Set(ctx context.Context, key string, value []byte) error
	Wait(ctx context.Context, keys ...string) ([][]byte, error)
}

// Config says who joins which world.
type Config struct {
	Rank, Size int
	// Store is not used after Join and may be nil in a world of one.
	Store Store
	// Namespace keeps jobs and generations apart in the store; all ranks of a
	// world give the same one, which no earlier world has used.
	Namespace string
	// Token is the job's secret.
	Token string
	// ListenAddr is the own address that peers connect to, with or without a
	// port; empty: that of Interface, or else 127.0.0.1. An unspecified address
	// (0.0.0.0, ::) listens on all and publishes the first routable one.
	ListenAddr string
	// Interface names a network interface to listen on instead.
	Interface string
	// Host identifies this machine to find ranks that share it; empty: the
	// kernel's boot and network namespace.
	Host string
	// ConnectTimeout bounds Join; 0 means 60 s.
	ConnectTimeout time.Duration
	// Refused, where set, learns of connections that were turned away during
	// Join. It is called from several goroutines.
	Refused func(remote net.Addr, err error)
}

func (c Config) check() error {
	if c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size {
		return fmt.Errorf("tcp: rank %d of %d", c.Rank, c.Size)
	}
	if c.Size > 1 && c.Store == nil {
		return fmt.Errorf("tcp: rank %d of %d has no rendezvous store", c.Rank, c.Size)
	}
	if len(c.Namespace) > namespaceMax {
		return fmt.Errorf("tcp: namespace of %d bytes, at most %d", len(c.Namespace), namespaceMax)
	}
	return nil
}

func (c Config) key(rank int) string { return fmt.Sprintf("%s/tcp/%d", c.Namespace, rank) }
