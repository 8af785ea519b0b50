//go:build linux && (amd64 || arm64)

package shm

import (
	"time"

	"github.com/gradfusion/gradfusion/collective"
)

// Values of a rank's sleeping word: how to wake it.
const (
	sleepsOnFutex = 1
	sleepsOnBell  = 2
)

// futexTime bounds a sleep; the runtime may need the thread.
const futexTime = 50 * time.Millisecond

// publish tells the peers that this rank has done its next thing.
func (d *domain) publish() {
	d.published++
	d.flags[d.rank].Store(d.published)
	for r, word := range d.sleeping {
		if r == d.rank || word.Load() == 0 {
			continue
		}
		switch word.Swap(0) {
		case sleepsOnFutex:
			wakeSleeper(word)
		case sleepsOnBell:
			d.transport.ring(d.ranks[r])
		}
	}
}

// awaitAll waits until all ranks have published count things.
func (d *domain) awaitAll(c *collective.DirectCall, count uint32) error {
	for i := 1; i < len(d.ranks); i++ {
		if err := d.awaitRank(c, (d.rank+i)%len(d.ranks), count); err != nil {
			return err
		}
	}
	return nil
}

func (d *domain) awaitRank(c *collective.DirectCall, peer int, count uint32) error {
	flag := d.flags[peer]
	pauses := d.transport.spin.pauses
	if c.Foreground.Load() {
		pauses = d.transport.spin.foreground
		for range d.transport.spin.looks {
			if int32(flag.Load()-count) >= 0 {
				return nil
			}
		}
	}
	for range pauses {
		if int32(flag.Load()-count) >= 0 {
			return nil
		}
		pause(1)
	}
	if c.Foreground.Load() {
		for i := range d.transport.spin.yields {
			if int32(flag.Load()-count) >= 0 {
				if i > 0 && i < 4 {
					d.spread(peer)
				}
				return nil
			}
			if d.stopped.Load() {
				return d.reason()
			}
			relax(i)
		}
	}
	return d.sleep(c, peer, count)
}

func (d *domain) sleep(c *collective.DirectCall, peer int, count uint32) error {
	c.Waiting.Store(int32(peer))
	defer c.Waiting.Store(-1)
	word := d.sleeping[d.rank]
	defer word.Store(0)
	for {
		mode := uint32(sleepsOnBell)
		if c.Foreground.Load() {
			mode = sleepsOnFutex
		}
		word.Store(mode)
		switch {
		case int32(d.flags[peer].Load()-count) >= 0:
			return nil
		case d.stopped.Load():
			return d.reason()
		}
		if mode == sleepsOnFutex {
			sleepWhile(word, mode, futexTime)
			continue
		}
		select {
		case <-d.rouse:
		case <-d.quit:
		}
	}
}

// wakeDomains has the goroutines look again that sleep on the bell.
func (t *Transport) wakeDomains() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for d := range t.domains {
		select {
		case d.rouse <- struct{}{}:
		default:
		}
	}
}
