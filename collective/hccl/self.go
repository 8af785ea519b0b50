//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"errors"
	"fmt"
)

// drainSelf ends what death has left of messages of this rank with itself, whose
// lanes have no goroutine.
func (c *Comm) drainSelf() {
	c.mu.Lock()
	sends, receives := c.lanes[lane{c.rank, false}], c.lanes[lane{c.rank, true}]
	c.mu.Unlock()
	for _, l := range []*channel{sends, receives} {
		if l != nil {
			l.drain()
		}
	}
}

// toSelf matches messages of this rank with itself.
func (c *Comm) toSelf() {
	for {
		c.mu.Lock()
		sends, receives := c.lanes[lane{c.rank, false}], c.lanes[lane{c.rank, true}]
		if sends == nil || receives == nil || len(sends.queue) == 0 || len(receives.queue) == 0 {
			c.mu.Unlock()
			return
		}
		from, to := sends.queue[0], receives.queue[0]
		sends.queue, receives.queue = sends.queue[1:], receives.queue[1:]
		c.mu.Unlock()
		var err error
		if from.buf.Size() != to.buf.Size() {
			err = fmt.Errorf("rank %d sends itself %d bytes and receives %d", c.rank, from.buf.Size(), to.buf.Size())
		}
		if to.buf.Handle != 0 || from.buf.Handle != 0 {
			err = errors.Join(err, c.device.Move(to.buf, from.buf))
		} else {
			copy(to.buf.Bytes(), from.buf.Bytes())
		}
		from.end(err)
		to.end(err)
	}
}
