package inproc

import "github.com/gradfusion/gradfusion/collective"

// key tells the messages that a rank receives apart.
type key struct {
	from int
	tag  collective.Tag
}

// box holds the messages of one key that nobody has asked for yet, or the
// receives that nobody has served yet: never both.
type box struct {
	messages list[*message]
	receives list[*receive]
}

// message is something sent: a copy, or lent memory whose sender waits for taken.
type message struct {
	data  []byte
	own   []byte // memory for copies, reused
	lent  bool
	taken chan struct{}
}

// receive is a receiver that waits.
type receive struct {
	into    []byte
	inPlace bool
	message *message // served in place
	err     error
	ready   chan struct{}
}

// list is a queue that keeps its memory.
type list[T comparable] struct {
	items []T
	head  int
}

func (l *list[T]) push(v T) { l.items = append(l.items, v) }

func (l *list[T]) empty() bool { return l.head == len(l.items) }

// pop returns the oldest item, or the zero T.
func (l *list[T]) pop() T {
	var zero T
	if l.empty() {
		return zero
	}
	v := l.items[l.head]
	l.items[l.head] = zero
	l.head++
	if l.empty() {
		l.items, l.head = l.items[:0], 0
	} else if l.head > 32 && 2*l.head > len(l.items) {
		l.items, l.head = append(l.items[:0], l.items[l.head:]...), 0
	}
	return v
}

func (l *list[T]) remove(v T) bool {
	for i := l.head; i < len(l.items); i++ {
		if l.items[i] == v {
			l.items = append(l.items[:i], l.items[i+1:]...)
			return true
		}
	}
	return false
}

// box returns the box of k; t.mu is held.
func (t *Transport) box(k key) *box {
	b := t.boxes[k]
	if b == nil {
		if n := len(t.spare); n > 0 {
			b, t.spare = t.spare[n-1], t.spare[:n-1]
		} else {
			b = &box{}
		}
		t.boxes[k] = b
	}
	return b
}

// keep is the number of empty boxes that stay in the map: a steady user comes
// back to the same tags.
const keep = 256

// tidy removes an empty box when there are many, so that a user with a new tag
// for each message does not fill memory; t.mu is held.
func (t *Transport) tidy(k key, b *box) {
	if len(t.boxes) > keep && b.messages.empty() && b.receives.empty() {
		delete(t.boxes, k)
		if len(t.spare) < keep {
			t.spare = append(t.spare, b)
		}
	}
}

// message wraps b: a copy when it is small, else b itself.
func (t *Transport) message(b []byte) *message {
	m := t.world.messages.Get().(*message)
	if m.lent = len(b) > collective.EagerSize; m.lent {
		m.data = b
		return m
	}
	m.own = append(m.own[:0], b...)
	m.data = m.own
	return m
}

// release ends a receiver's use of m. A lent message goes back to its sender,
// who recycles it.
func (t *Transport) release(m *message) {
	if m.lent {
		m.taken <- struct{}{}
		return
	}
	t.recycle(m)
}

func (t *Transport) recycle(m *message) {
	m.data = nil
	t.world.messages.Put(m)
}

// fill copies a message to where its receiver wants it.
func fill(into []byte, from int, tag collective.Tag, data []byte) error {
	if len(data) != len(into) {
		head := append([]byte(nil), data[:min(len(data), collective.HeadSize)]...)
		return &collective.LengthError{Peer: from, Tag: tag, Want: len(into), Got: len(data), Head: head}
	}
	copy(into, data)
	return nil
}
