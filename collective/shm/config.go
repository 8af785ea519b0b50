package shm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gradfusion/gradfusion/collective"
)

// ErrUnavailable is wrapped by the error of Join when these ranks cannot share
// memory: another system, another host, a kernel that refuses. All ranks of the
// world get it, so that all can turn to another transport.
var ErrUnavailable = errors.New("shared memory is not available")

// Store is where ranks meet; *store.Client is one. Wait returns when all keys
// are there; its time-out may be a *store.WaitError.
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
	// ConnectTimeout bounds Join; 0 means 60 s.
	ConnectTimeout time.Duration
	// Refused, where set, learns of connections that were turned away during
	// Join. It is called from several goroutines.
	Refused func(err error)
	// Names are the numbers by which errors call the ranks: those that they have
	// in a world of which this one is a host. Nil: the ranks themselves.
	Names []int
	// Lost, where set, is told once of the rank whose loss ends the transport,
	// on a goroutine of the transport or of a caller: it must not wait for
	// either.
	Lost func(lost *collective.LinkError)
}

const (
	maxRanks           = 128
	namespaceMax       = 200
	defaultConnectTime = 60 * time.Second
)

func (c Config) check() error {
	switch {
	case c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size:
		return fmt.Errorf("shm: rank %d of %d", c.Rank, c.Size)
	case c.Size > 1 && c.Store == nil:
		return fmt.Errorf("shm: rank %d of %d has no rendezvous store", c.Rank, c.Size)
	case len(c.Namespace) > namespaceMax:
		return fmt.Errorf("shm: namespace of %d bytes, at most %d", len(c.Namespace), namespaceMax)
	case c.Names != nil && len(c.Names) != c.Size:
		return fmt.Errorf("shm: %d names for %d ranks", len(c.Names), c.Size)
	case c.Size > maxRanks:
		return fmt.Errorf("shm: %d ranks, at most %d: %w", c.Size, maxRanks, ErrUnavailable)
	}
	return nil
}

func (c Config) key(what string) string { return c.Namespace + "/shm/" + what }
