package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// answerTime is how long a cancelled call waits for the server to say what was
// missing.
const answerTime = 500 * time.Millisecond

// Client is one rank's connection to the store. It is safe for concurrent use.
// When the connection breaks, every pending and later call fails.
type Client struct {
	address string
	conn    net.Conn

	writing sync.Mutex // held while a frame is written
	frame   []byte

	mu      sync.Mutex
	last    uint64
	pending map[uint64]chan message
	err     error // why the connection ended

	done    chan struct{}
	running sync.WaitGroup
}

// Addr is where the store was reached, LocalAddr the own end: its host is an
// address at which the store's host can reach this one.
func (c *Client) Addr() string { return c.address }

// LocalAddr is the own end of the connection.
func (c *Client) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// Set stores a copy of value under key and wakes who waits for it.
func (c *Client) Set(ctx context.Context, key string, value []byte) error {
	_, err := c.call(ctx, opSet, key, []byte(key), value)
	return err
}

// Get waits until key is there and returns its value. Its time-out is a
// *WaitError.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	values, err := c.Wait(ctx, key)
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// Add adds to a counter, which starts at zero, and returns the sum. Get reads a
// counter as decimal text.
func (c *Client) Add(ctx context.Context, key string, delta int64) (int64, error) {
	parts, err := c.call(ctx, opAdd, key, []byte(key), strconv.AppendInt(nil, delta, 10))
	if err != nil {
		return 0, err
	}
	if len(parts) != 1 {
		return 0, c.wrap(key, errors.New("answer without a sum"))
	}
	sum, err := strconv.ParseInt(string(parts[0]), 10, 64)
	if err != nil {
		return 0, c.wrap(key, err)
	}
	return sum, nil
}

// Wait waits until all keys are there and returns their values. A time-out is a
// *WaitError that lists the missing keys.
func (c *Client) Wait(ctx context.Context, keys ...string) ([][]byte, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values, err := c.call(ctx, opWait, keys[0], toParts(keys)...)
	var wait *WaitError
	if errors.As(err, &wait) && wait.Missing == nil {
		wait.Missing = keys
	}
	if err == nil && len(values) != len(keys) {
		err = c.wrap(keys[0], fmt.Errorf("%d values for %d keys", len(values), len(keys)))
	}
	return values, err
}

// Keys lists the keys that begin with prefix, sorted.
func (c *Client) Keys(ctx context.Context, prefix string) ([]string, error) {
	parts, err := c.call(ctx, opKeys, prefix, []byte(prefix))
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(parts))
	for i, p := range parts {
		keys[i] = string(p)
	}
	return keys, nil
}

// Delete removes key and reports whether it was there.
func (c *Client) Delete(ctx context.Context, key string) (bool, error) {
	parts, err := c.call(ctx, opDelete, key, []byte(key))
	return len(parts) == 1, err
}

// Will asks the server to set key when this connection ends in any other way
// than Close: others learn of a rank's death by waiting for its key.
func (c *Client) Will(ctx context.Context, key string, value []byte) error {
	_, err := c.call(ctx, opWill, key, []byte(key), value)
	return err
}

// Done is closed when the connection has ended: the store, and with it rank 0's
// process, is gone or this client was closed.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close leaves cleanly (no will is carried out) and waits for the client's
// goroutine.
func (c *Client) Close() error {
	c.end(ErrClosed)
	c.writing.Lock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(answerTime))
	if b, err := (message{op: opLeave}).append(c.frame[:0]); err == nil {
		_, _ = c.conn.Write(b) // a broken connection has ended anyway
	}
	c.writing.Unlock()
	_ = c.conn.Close()
	c.running.Wait()
	return nil
}

func (c *Client) wrap(key string, err error) error {
	return fmt.Errorf("store %s: key %s: %w", c.address, key, err)
}

// call sends one request and waits for its answer. key is for errors.
func (c *Client) call(ctx context.Context, op operation, key string, parts ...[]byte) ([][]byte, error) {
	if err := ctx.Err(); err != nil && op != opWait {
		return nil, c.wrap(key, err)
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return nil, c.wrap(key, err)
	}
	c.last++
	id := c.last
	c.pending[id] = answer
	c.mu.Unlock()
	defer c.forget(id)
	if err := c.send(message{op: op, id: id, parts: parts}); err != nil {
		return nil, c.wrap(key, err)
	}
	select {
	case m := <-answer:
		return c.result(m, key, nil)
	case <-c.done:
		return nil, c.wrap(key, c.cause())
	case <-ctx.Done():
	}
	if op != opWait {
		return nil, c.wrap(key, ctx.Err())
	}
	return c.giveUp(ctx, id, key, answer)
}

// giveUp asks what a wait that timed out still lacks.
func (c *Client) giveUp(ctx context.Context, id uint64, key string, answer <-chan message) ([][]byte, error) {
	if err := c.send(message{op: opCancel, id: id}); err != nil {
		return nil, &WaitError{Address: c.address, Err: ctx.Err()}
	}
	timer := time.NewTimer(answerTime)
	defer timer.Stop()
	select {
	case m := <-answer:
		return c.result(m, key, ctx.Err())
	case <-c.done:
	case <-timer.C:
	}
	return nil, &WaitError{Address: c.address, Err: ctx.Err()}
}

// result turns an answer into call's results.
func (c *Client) result(m message, key string, ended error) ([][]byte, error) {
	switch m.op {
	case opDone:
		return m.parts, nil
	case opMissing:
		wait := &WaitError{Address: c.address, Err: ended}
		for _, p := range m.parts {
			wait.Missing = append(wait.Missing, string(p))
		}
		return nil, wait
	case opFailed:
		if len(m.parts) == 1 {
			return nil, c.wrap(key, errors.New(string(m.parts[0])))
		}
	}
	return nil, c.wrap(key, fmt.Errorf("unexpected answer %d", m.op))
}

func (c *Client) forget(id uint64) {
	c.mu.Lock()
	delete(c.pending, id)
	c.mu.Unlock()
}

func (c *Client) send(m message) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	b, err := m.append(c.frame[:0])
	if err != nil {
		return err
	}
	c.frame = b[:0]
	if _, err := c.conn.Write(b); err != nil {
		c.end(fmt.Errorf("connection lost (has rank 0 ended?): %w", err))
		return c.cause()
	}
	return nil
}

func (c *Client) read() {
	r := bufio.NewReader(c.conn)
	for {
		m, err := readMessage(r)
		if err != nil {
			c.end(fmt.Errorf("connection lost (has rank 0 ended?): %w", err))
			return
		}
		c.mu.Lock()
		answer := c.pending[m.id]
		delete(c.pending, m.id)
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// end records the first cause and wakes everybody.
func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	close(c.done)
}

func (c *Client) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
