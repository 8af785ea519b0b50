//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// Sub implements collective.Comm. A Sub has a communicator of its own, with two
// buffers on the device, so callers keep it.
//
// Where ranks found each other by a rank table, HCCL cuts the Sub from the
// communicator of all ranks: the hosts' network, over which root info goes, may not
// be there. It does so for that one only, not for Subs; those, and Subs of ranks
// that met by root info, meet by root info of their own.
func (c *Comm) Sub(ctx context.Context, ranks []int) (collective.Comm, error) {
	global := make([]int, len(ranks))
	for i, r := range ranks {
		if r < 0 || r >= len(c.ranks) || slices.Contains(ranks[:i], r) {
			return nil, fmt.Errorf("rank %d, communicator %s: sub-communicator of %v: no distinct ranks below %d", c.rank, c.name, ranks, len(c.ranks))
		}
		global[i] = c.ranks[r]
	}
	c.mu.Lock()
	c.subs++
	m := making{mb: c.config.BufferMB, id: uint64(c.subs)}
	c.mu.Unlock()
	name := fmt.Sprintf("%s.%d", c.name, m.id)
	if err := c.Start(ctx, collective.Call{Kind: plan.Barrier, Label: "sub-communicator " + name}).Wait(ctx); err != nil {
		return nil, err
	}
	if c.owner && c.config.RankTable != "" && c.library.newer.HcclCreateSubCommConfig != 0 {
		m.whole = c.handle
	}
	if !slices.Contains(ranks, c.rank) {
		return nil, c.standAside(ctx, name, m)
	}
	sub, err := newComm(ctx, c.job, name, global, m)
	if refusesToCut(m, err) {
		m.whole = 0
		sub, err = newComm(ctx, c.job, name+".root", global, m)
	}
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// refusesToCut reports whether the library does not cut communicators, which it does
// on all ranks alike.
func refusesToCut(m making, err error) bool {
	var refused *Error
	return m.whole != 0 && errors.As(err, &refused) && refused.Code == resultNotSupported
}

// noPart is the id of a part of which the caller is not.
const noPart = 0xFFFFFFFF

// standAside takes part in making a Sub of which this rank is not. Where the library does
// not come back in time this rank's Comms end, as when a Sub cannot be made.
func (c *Comm) standAside(ctx context.Context, name string, m making) error {
	if m.whole == 0 {
		return nil
	}
	ctx, stop := c.bounded(ctx)
	defer stop()
	err := c.issuing.DoContext(ctx, func() error {
		var none uintptr
		config := c.job.commConfig(m.mb)
		code := ascend.Call(c.library.newer.HcclCreateSubCommConfig, uintptr(unsafe.Pointer(&m.whole)), 0, 0, noPart, 0,
			uintptr(unsafe.Pointer(&config[0])), uintptr(unsafe.Pointer(&none)))
		if code == resultNotSupported {
			return nil // the others go another way
		}
		return c.failed("HcclCreateSubCommConfig", name, code)
	})
	if err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	c.hung.Store(true) // the library may have the thread
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	if err = fmt.Errorf("the library has not made it: %w", context.Cause(ctx)); errors.Is(err, context.DeadlineExceeded) {
		err = c.suspected(c.ranks, err)
	}
	e := &collective.PeerError{
		Generation: c.config.Generation, Group: c.name, Rank: c.rank, Global: c.ranks, Call: "making sub-communicator " + name + " of others",
	}
	e.Peer, e.Err = culprit(c.ranks, err)
	return c.job.die(e)
}
