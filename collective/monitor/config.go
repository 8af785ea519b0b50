package monitor

import (
	"context"
	"fmt"
	"time"

	"github.com/gradfusion/gradfusion/observe"
)

// Store is the rendezvous store, which rank 0's process serves; *store.Client
// and *store.Local are such.
type Store interface {
	Set(ctx context.Context, key string, value []byte) error
	Wait(ctx context.Context, keys ...string) ([][]byte, error)
	Will(ctx context.Context, key string, value []byte) error
	Done() <-chan struct{}
}

// Config says who watches whom. Rank, Size and Store have to be set.
type Config struct {
	Rank, Size int // of the transport
	Store      Store
	// Namespace keeps jobs and generations apart in the store.
	Namespace string
	// Heartbeat is the interval at which ranks show that they live; 0: 1 s. One
	// that misses three is reported.
	Heartbeat time.Duration
	// Stall is how long a call may wait until it is reported; 0: 5 s, negative:
	// for ever.
	Stall time.Duration
	// Events receives a span of kind Stall for every report; nil drops them.
	Events *observe.Recorder
	// On receives what was found, on every rank; nil drops it. It is called by
	// one goroutine at a time and must return soon.
	On func(Event)
}

// missed is how many heartbeats a rank may miss.
const missed = 3

func (c *Config) complete() error {
	if c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size {
		return fmt.Errorf("monitor: rank %d of %d", c.Rank, c.Size)
	}
	if c.Store == nil {
		return fmt.Errorf("monitor: rank %d of %d has no store", c.Rank, c.Size)
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = time.Second
	}
	if c.Stall == 0 {
		c.Stall = 5 * time.Second
	}
	return nil
}

// every is the time between beats: short enough to see a stall begin.
func (c *Config) every() time.Duration {
	if c.Stall > 0 {
		return max(min(c.Heartbeat, c.Stall/2), time.Millisecond)
	}
	return c.Heartbeat
}

// The keys in the store.
func (c *Config) key(name string) string { return c.Namespace + "/monitor/" + name }
func (c *Config) beatKey(rank int) string {
	return c.key(fmt.Sprintf("beat/%d", rank))
}
func (c *Config) hereKey(rank int) string { return c.key(fmt.Sprintf("here/%d", rank)) }
func (c *Config) askKey(rank, k int) string {
	return c.key(fmt.Sprintf("ask/%d/%d", rank, k))
}
func (c *Config) answerKey(rank, k int) string {
	return c.key(fmt.Sprintf("answer/%d/%d", rank, k))
}
func (c *Config) newsKey(k int) string { return c.key(fmt.Sprintf("news/%d", k)) }
func (c *Config) deathKey() string     { return c.key("death") }

// keys lists a key of each rank.
func (c *Config) keys(of func(rank int) string) []string {
	keys := make([]string, c.Size)
	for rank := range keys {
		keys[rank] = of(rank)
	}
	return keys
}

// Kind says what an Event tells.
type Kind uint8

// The kinds of events.
const (
	Stalled   Kind = iota // a call waits for long
	Silent                // a rank is stopped, or not heard of
	Recovered             // a silent rank is back, or a stalled call has ended
	Lost                  // a rank is gone; Groups with it are dead
)

// Event is something that a Monitor found.
type Event struct {
	Kind  Kind
	Rank  int       // whom it is about, or -1
	Group string    // of a stalled call
	Text  string    // what the user should read; lines after the first are indented
	Since time.Time // by the clock of rank 0
}
