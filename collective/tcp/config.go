package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/gradfusion/gradfusion/collective"
)

// Store is where ranks publish their addresses; *store.Client is one. Wait
// returns when all keys are there; its time-out may be a *store.WaitError.
type Store interface {
	Set(ctx context.Context, key string, value []byte) error
	Wait(ctx context.Context, keys ...string) ([][]byte, error)
}

// Config says who joins which world. Sockets, Checksum and TLS must be the same
// on all ranks; a rank that differs is turned away.
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
	// Interface chooses the network interface to listen on instead, by the
	// grammar of HCCL_SOCKET_IFNAME: "eth" is every name that begins so, "=eth0"
	// exactly that one, "^docker" and "^=lo" every other; several with commas.
	Interface string
	// Ports bounds the port to listen on when ListenAddr has none; zero: any.
	Ports PortRange
	// Host identifies this machine to find ranks that share it; empty: the
	// kernel's boot and network namespace.
	Host string
	// Sockets is the number of connections per pair of ranks, at most 16, over
	// which large messages are striped; 0 means 1.
	Sockets int
	// Segment is the largest piece of a message that is written at once, at most
	// 64 MiB; 0 means 1 MiB.
	Segment int
	// Buffer sizes the kernel's buffers of a socket, in bytes; 0 leaves them to
	// the kernel, which does better as a rule.
	Buffer int
	// Checksum protects every frame with CRC32C.
	Checksum bool
	// TLS encrypts all connections; nil: none is.
	TLS *TLS
	// ConnectTimeout bounds Join; 0 means 60 s.
	ConnectTimeout time.Duration
	// Patience bounds how long Close waits for peers that still take what was sent:
	// the time-out of their calls, after which it is of no use to them; 0 means 60 s.
	Patience time.Duration
	// Busy says that no processor is left beside those that compute: who waits then
	// sleeps at once, and does not look at the socket for a while before.
	Busy bool
	// Retry is how many times in a row a broken connection is built up again,
	// when its peer still listens; 0: a broken connection is a lost peer.
	Retry int
	// Hosts are the ranks by host, where the caller knows; nil: by Host.
	Hosts [][]int
	// Beside are ranks that this one reaches by another transport: they are not
	// connected to it. They must leave out this rank likewise.
	Beside []int
	// Refused, where set, learns of connections that were turned away. It is
	// called from several goroutines.
	Refused func(remote net.Addr, err error)
	// Lost, where set, is told once of the rank whose loss ends the transport,
	// on a goroutine of the transport or of a caller: it must not wait for
	// either.
	Lost func(lost *collective.LinkError)
}

// PortRange is First to Last, both included; zero is any port.
type PortRange struct{ First, Last int }

func (p PortRange) String() string {
	if p.First == p.Last {
		return fmt.Sprint(p.First)
	}
	return fmt.Sprintf("%d..%d", p.First, p.Last)
}

// MaxSegment bounds Config.Segment.
const MaxSegment = dataMax

const (
	maxSockets     = 16
	defaultSegment = 1 << 20
)

func (c Config) check() error {
	switch {
	case c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size:
		return fmt.Errorf("tcp: rank %d of %d", c.Rank, c.Size)
	case c.Size > 1 && c.Store == nil:
		return fmt.Errorf("tcp: rank %d of %d has no rendezvous store", c.Rank, c.Size)
	case len(c.Namespace) > namespaceMax:
		return fmt.Errorf("tcp: namespace of %d bytes, at most %d", len(c.Namespace), namespaceMax)
	case c.Sockets < 0 || c.Sockets > maxSockets:
		return fmt.Errorf("tcp: %d sockets per peer, at most %d", c.Sockets, maxSockets)
	case c.Segment < 0 || c.Segment > dataMax:
		return fmt.Errorf("tcp: segments of %d bytes, at most %d", c.Segment, dataMax)
	case c.Size > 1 && c.Token == "" && c.TLS != nil && *c.TLS == (TLS{}):
		return errors.New("tcp: encryption without a job token would let anybody in between; set GRADFUSION_TOKEN to the same secret on all ranks, or name certificates")
	case c.Buffer < 0 || c.Retry < 0 || c.Patience < 0:
		return fmt.Errorf("tcp: buffers of %d bytes, %d retries, patience of %v", c.Buffer, c.Retry, c.Patience)
	case c.Ports.First < 0 || c.Ports.Last > 65535 || c.Ports.First > c.Ports.Last:
		return fmt.Errorf("tcp: ports %v", c.Ports)
	}
	return nil
}

// filled has the defaults in place of zeros.
func (c Config) filled() Config {
	if c.Sockets == 0 {
		c.Sockets = 1
	}
	if c.Segment == 0 {
		c.Segment = defaultSegment
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = defaultConnectTime
	}
	return c
}

// connects reports whether this rank is to have a connection with a peer.
func (c Config) connects(peer int) bool { return peer != c.Rank && !slices.Contains(c.Beside, peer) }

func (c Config) key(rank int) string { return fmt.Sprintf("%s/tcp/%d", c.Namespace, rank) }
