package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective/store"
)

const parallelDials = 32

// Join connects this rank with all others and returns when every link of this
// rank is up. All ranks call it at about the same time.
func Join(ctx context.Context, c Config) (*Transport, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c = c.filled()
	if c.Size == 1 {
		return newTransport(c, nil, [][]net.Conn{nil}, [][]int{{0}})
	}
	ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
	defer cancel()
	d, err := openDoor(ctx, c)
	if err != nil {
		c.excuse(ctx, err)
		return nil, err
	}
	hosts, err := d.connect(ctx)
	if err != nil || c.Retry == 0 {
		d.close()
	}
	conns := d.take()
	if err == nil {
		var t *Transport
		if t, err = newTransport(c, d, conns, hosts); err == nil {
			return t, nil
		}
		d.close()
	}
	for _, peer := range conns {
		for _, conn := range peer {
			if conn != nil {
				_ = conn.Close()
			}
		}
	}
	return nil, err
}

// cannotJoin begins what a rank that cannot join publishes in place of its address.
const cannotJoin = "cannot join\n"

// excuse tells the peers why this rank will not join, if that can be told: they
// would wait for it until their time is up.
func (c Config) excuse(ctx context.Context, err error) {
	_ = c.Store.Set(ctx, c.key(c.Rank), []byte(cannotJoin+err.Error()))
}

// connect publishes, dials the lower ranks and waits for the higher ones.
func (d *door) connect(ctx context.Context) ([][]int, error) {
	start := time.Now()
	own, err := advertise(d.listener)
	if err != nil {
		d.excuse(ctx, err)
		return nil, err
	}
	host := d.Host
	if host == "" {
		host = hostIdentity()
	}
	if err := d.Store.Set(ctx, d.key(d.Rank), []byte(own+"\n"+host)); err != nil {
		return nil, fmt.Errorf("tcp: rank %d publishes its address: %w", d.Rank, err)
	}
	identities, err := d.lookUp(ctx, start)
	if err != nil {
		return nil, err
	}
	group, dialing := errgroup.WithContext(ctx)
	group.SetLimit(parallelDials)
	for peer := range d.Rank {
		if !d.connects(peer) {
			continue
		}
		for index := range d.Sockets {
			group.Go(func() error { return d.reach(dialing, peer, index) })
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	select {
	case <-d.full:
		if d.Hosts != nil {
			return d.Hosts, nil
		}
		return groupHosts(identities), nil
	case <-ctx.Done():
		err := fmt.Errorf("tcp: rank %d: ranks %s did not connect within %v: %w",
			d.Rank, d.missing(), time.Since(start).Round(time.Millisecond), ctx.Err())
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.away != nil {
			err = fmt.Errorf("%w (turned away was %w)", err, d.away)
		}
		return nil, err
	}
}

// lookUp waits for the addresses and host identities of all ranks.
func (d *door) lookUp(ctx context.Context, start time.Time) (identities []string, err error) {
	keys := make([]string, d.Size)
	for rank := range keys {
		keys[rank] = d.key(rank)
	}
	values, err := d.Store.Wait(ctx, keys...)
	if err != nil {
		var wait *store.WaitError
		if errors.As(err, &wait) && ctx.Err() != nil {
			return nil, fmt.Errorf("tcp: rank %d: ranks %s did not join within %v: %w",
				d.Rank, ranksOf(keys, wait.Missing), time.Since(start).Round(time.Millisecond), err)
		}
		return nil, fmt.Errorf("tcp: rank %d waits for its peers' addresses: %w", d.Rank, err)
	}
	d.addresses, identities = make([]string, d.Size), make([]string, d.Size)
	for rank, v := range values {
		if why, ok := strings.CutPrefix(string(v), cannotJoin); ok {
			return nil, fmt.Errorf("tcp: rank %d: rank %d cannot join: %s", d.Rank, rank, why)
		}
		address, identity, ok := strings.Cut(string(v), "\n")
		if !ok {
			return nil, fmt.Errorf("tcp: rank %d: key %s of the store holds no address", d.Rank, keys[rank])
		}
		d.addresses[rank], identities[rank] = address, identity
	}
	return identities, nil
}

func ranksOf(keys, missing []string) string {
	in := map[string]bool{}
	for _, k := range missing {
		in[k] = true
	}
	var ranks []string
	for rank, k := range keys {
		if in[k] {
			ranks = append(ranks, fmt.Sprint(rank))
		}
	}
	return strings.Join(ranks, ", ")
}

func (d *door) missing() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ranks []string
	for rank := d.Rank + 1; rank < d.Size; rank++ {
		for _, conn := range d.conns[rank] {
			if conn == nil {
				ranks = append(ranks, fmt.Sprint(rank))
				break
			}
		}
	}
	return strings.Join(ranks, ", ")
}

// reach connects to a lower rank, again and again until ctx ends.
func (d *door) reach(ctx context.Context, peer, index int) error {
	start := time.Now()
	var last error // the newest that is not a time-out
	pause := firstPause
	for attempts := 1; ; attempts++ {
		conn, _, err := d.dial(ctx, peer, hello{wish: wishJoin, index: index, to: peer})
		if err == nil {
			d.keep(peer, index, conn)
			return nil
		}
		if errors.Is(err, errRefused) {
			return fmt.Errorf("tcp: rank %d: rank %d at %s turned it away: %w", d.Rank, peer, d.addresses[peer], err)
		}
		var late net.Error
		if last == nil || !errors.As(err, &late) || !late.Timeout() {
			last = err
		}
		rest(ctx, pause)
		if ctx.Err() != nil {
			return fmt.Errorf("tcp: rank %d: rank %d at %s not reachable within %v, in %d attempts: %w",
				d.Rank, peer, d.addresses[peer], time.Since(start).Round(time.Millisecond), attempts, last)
		}
		pause = min(2*pause, lastPause)
	}
}
