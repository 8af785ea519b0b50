package store

import (
	"bufio"
	"net"
	"strconv"
	"sync"
)

// maxAnswers is how many answers may wait for a client that does not read; such
// a client is cut off, so that nobody else waits for it.
const maxAnswers = 1024

type will struct {
	key   string
	value []byte
}

// session is one client on the server's side.
type session struct {
	server *Server
	conn   net.Conn
	out    chan message

	mu    sync.Mutex
	waits map[uint64]*waiter
	wills []will
}

// run serves the client until it leaves or breaks, then carries out its wills.
func (c *session) run() {
	var writing sync.WaitGroup
	end := make(chan struct{})
	writing.Go(func() { c.write(end) })
	clean := c.read()
	c.mu.Lock()
	waits := c.waits
	c.waits = nil
	c.mu.Unlock()
	for _, w := range waits {
		c.server.table.cancel(w)
	}
	close(end)
	_ = c.conn.Close()
	writing.Wait()
	if clean {
		return
	}
	for _, w := range c.wills {
		c.server.table.set(w.key, w.value)
	}
}

// read handles requests; it reports whether the client left cleanly.
func (c *session) read() bool {
	r := bufio.NewReader(c.conn)
	for {
		m, err := readMessage(r)
		if err != nil {
			return false
		}
		if m.op == opLeave {
			return true
		}
		if err := c.handle(m); err != nil {
			c.answer(message{op: opFailed, id: m.id, parts: [][]byte{[]byte(err.Error())}})
		}
	}
}

func (c *session) handle(m message) error {
	t := c.server.table
	done := message{op: opDone, id: m.id}
	switch m.op {
	case opSet, opWill, opAdd:
		if err := m.need(2); err != nil {
			return err
		}
	case opKeys, opDelete:
		if err := m.need(1); err != nil {
			return err
		}
	}
	switch m.op {
	case opSet:
		t.set(string(m.parts[0]), m.parts[1])
	case opWill:
		c.wills = append(c.wills, will{string(m.parts[0]), m.parts[1]})
	case opAdd:
		delta, err := strconv.ParseInt(string(m.parts[1]), 10, 64)
		if err != nil {
			return err
		}
		sum, err := t.add(string(m.parts[0]), delta)
		if err != nil {
			return err
		}
		done.parts = [][]byte{strconv.AppendInt(nil, sum, 10)}
	case opKeys:
		done.parts = toParts(t.keys(string(m.parts[0])))
	case opDelete:
		if t.delete(string(m.parts[0])) {
			done.parts = [][]byte{nil} // one part says that the key was there
		}
	case opWait:
		c.wait(m)
		return nil
	case opCancel:
		c.mu.Lock()
		w := c.waits[m.id]
		c.mu.Unlock()
		if w != nil {
			t.cancel(w)
		}
		return nil
	}
	c.answer(done)
	return nil
}

func (c *session) wait(m message) {
	w := &waiter{keys: make([]string, len(m.parts))}
	for i, k := range m.parts {
		w.keys[i] = string(k)
	}
	w.deliver = func(values [][]byte, missing []string) {
		c.mu.Lock()
		delete(c.waits, m.id)
		c.mu.Unlock()
		if missing != nil {
			c.answer(message{op: opMissing, id: m.id, parts: toParts(missing)})
			return
		}
		c.answer(message{op: opDone, id: m.id, parts: values})
	}
	c.mu.Lock()
	c.waits[m.id] = w
	c.mu.Unlock()
	c.server.table.wait(w)
}

// answer never blocks: the caller may hold the table's lock.
func (c *session) answer(m message) {
	select {
	case c.out <- m:
	default:
		_ = c.conn.Close()
	}
}

func (c *session) write(end <-chan struct{}) {
	var b []byte
	for {
		select {
		case m := <-c.out:
			frame, err := m.append(b[:0])
			if err != nil {
				m = message{op: opFailed, id: m.id, parts: [][]byte{[]byte("the answer is " + err.Error())}}
				frame, _ = m.append(b[:0])
			}
			if _, err := c.conn.Write(frame); err != nil {
				_ = c.conn.Close()
				return
			}
			b = frame[:0]
		case <-end:
			return
		}
	}
}

func toParts(texts []string) [][]byte {
	parts := make([][]byte, len(texts))
	for i, s := range texts {
		parts[i] = []byte(s)
	}
	return parts
}
