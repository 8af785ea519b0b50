package mixed

import (
	"context"
	"errors"
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/shm"
	"github.com/gradfusion/gradfusion/collective/tcp"
)

// Join connects this rank with all others, which are on the given hosts (those
// that Hosts returned). All ranks call it at about the same time.
func Join(ctx context.Context, c Config, hosts [][]int) (*Transport, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	t, err := newTransport(c.TCP.Rank, c.TCP.Size, hosts)
	if err != nil {
		return nil, err
	}
	// A rank that is lost while others still join is found at once.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.giveUp = cancel
	if err := t.joinHost(ctx, c); err != nil {
		return nil, err
	}
	if err := t.joinAcross(ctx, c); err != nil {
		_ = t.Close()
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return nil, err
	}
	return t, nil
}

// joinHost joins the host's shared memory, if there is anybody to share it with
// and it can be shared.
func (t *Transport) joinHost(ctx context.Context, c Config) error {
	if len(t.host) == 1 {
		return nil
	}
	config := c.memory(t.host)
	config.Lost = t.lostInside
	inside, err := shm.Join(ctx, config)
	switch {
	case errors.Is(err, shm.ErrUnavailable): // to all ranks of the host
		t.why = err
		return nil
	case err != nil:
		return err
	}
	t.inside = inside
	return nil
}

func (t *Transport) joinAcross(ctx context.Context, c Config) error {
	config := c.TCP
	config.Hosts, config.Lost, config.Beside = t.hosts, t.lostAcross, nil
	if t.inside != nil {
		for _, r := range t.host {
			if r != t.rank {
				config.Beside = append(config.Beside, r)
			}
		}
	}
	across, err := tcp.Join(ctx, config)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.across, t.giveUp = across, nil
	lost := t.first
	t.mu.Unlock()
	if lost != nil {
		across.Fail(lost)
	}
	return nil
}

// lostInside is told of a rank of this host.
func (t *Transport) lostInside(lost *collective.LinkError) {
	t.mu.Lock()
	if t.first == nil {
		t.first = lost
	}
	across, giveUp := t.across, t.giveUp
	t.mu.Unlock()
	switch {
	case across != nil:
		across.Fail(lost)
	case giveUp != nil:
		giveUp(lost)
	}
}

// lostAcross is told of a rank of another host.
func (t *Transport) lostAcross(lost *collective.LinkError) {
	if t.inside != nil {
		t.inside.Fail(lost)
	}
}
