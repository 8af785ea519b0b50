package faulty

import (
	"context"
	"slices"
	"time"

	"github.com/gradfusion/gradfusion/collective"
)

// lateTime bounds how long Close waits for messages that leave late.
const lateTime = time.Second

// stream is what keeps its order.
type stream struct {
	to  int
	tag collective.Tag
}

// queue is the messages of a stream behind one that leaves late.
type queue struct {
	messages []lateMessage
	empty    chan struct{} // closed when the last has left
}

type lateMessage struct {
	b    []byte
	wait time.Duration
}

// overtaken keeps a message that is to leave late, or that is behind such a one.
func (t *Transport) overtaken(s stream, b []byte, wait time.Duration) (handed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.late[s]
	switch {
	case t.failed != nil:
		return false, t.failed
	case q == nil && wait == 0 || t.ctx.Err() != nil:
		return false, nil
	case q == nil:
		q = &queue{empty: make(chan struct{})}
		t.late[s] = q
		t.owned.Go(func() { t.deliver(s, q) })
	}
	q.messages = append(q.messages, lateMessage{slices.Clone(b), wait})
	return true, nil
}

// deliver sends the messages of a queue until it is empty.
func (t *Transport) deliver(s stream, q *queue) {
	defer close(q.empty)
	for {
		t.mu.Lock()
		if len(q.messages) == 0 {
			delete(t.late, s)
			t.mu.Unlock()
			return
		}
		m := q.messages[0]
		t.mu.Unlock()
		err := t.pause(t.ctx, m.wait)
		if err == nil {
			err = t.Transport.Send(t.ctx, s.to, s.tag, m.b)
		}
		t.mu.Lock()
		if err != nil {
			t.failed = err
			q.messages = nil
		} else {
			q.messages = q.messages[1:]
		}
		t.mu.Unlock()
	}
}

// flush waits for all queues.
func (t *Transport) flush() {
	ctx, cancel := context.WithTimeout(t.ctx, lateTime)
	defer cancel()
	t.mu.Lock()
	var waiting []chan struct{}
	for _, q := range t.late {
		waiting = append(waiting, q.empty)
	}
	t.mu.Unlock()
	for _, empty := range waiting {
		select {
		case <-empty:
		case <-ctx.Done():
			return
		}
	}
}
