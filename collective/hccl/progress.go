//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/gradfusion/gradfusion/collective"
)

var _ collective.Watched = (*Comm)(nil)

// identity names a Comm alike on all of its ranks.
func identity(c Config, name string, ranks []int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "hccl %s %d %v", name, c.Generation, ranks)
	return h.Sum64()
}

// ID implements collective.Watched.
func (c *Comm) ID() uint64 { return c.id }

// Name implements collective.Watched.
func (c *Comm) Name() string { return c.name }

// Ranks implements collective.Watched.
func (c *Comm) Ranks() []int { return c.ranks }

// Progress implements collective.Watched. Its making is call 0.
func (c *Comm) Progress() collective.Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := collective.Progress{Ended: c.ended, Began: c.began}
	switch {
	case c.step != "":
		p.Pending = append(p.Pending, collective.Pending{Call: fmt.Sprintf("rank %d %s", c.config.Rank, c.step), Peer: -1})
	case len(c.open) > 0:
		w := c.open[0]
		p.Pending = append(p.Pending, collective.Pending{Sequence: w.sequence, Call: textOf(w.call), Label: w.call.Label, Peer: -1})
	}
	for _, l := range c.lanes {
		if l.peer == c.rank {
			continue
		}
		p.Passed = append(p.Passed, collective.Passed{Peer: l.peer, Recv: l.recv, Count: l.done})
		if m := l.oldest(); m != nil {
			label := ""
			if l.joining {
				label = "a lane that is joining"
			}
			p.Pending = append(p.Pending, collective.Pending{
				Sequence: l.done + 1, Call: l.about(m), Label: label, Peer: l.peer, Exchange: true, Recv: l.recv, Ahead: !l.asked(),
			})
		}
	}
	slices.SortFunc(p.Pending, func(a, b collective.Pending) int { return cmp.Or(a.Peer-b.Peer, cmp.Compare(a.Call, b.Call)) })
	return p
}

// stepped notes what this rank waits for while it joins; "": it has joined.
func (c *Comm) stepped(step string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began = time.Now()
	}
	c.step = step
}
