package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxFrame bounds one request or answer in bytes; keys and values must fit.
const MaxFrame = 16 << 20

const maxParts = 1 << 16

// operation is what a frame asks or answers.
type operation uint8

const (
	opSet     operation = iota + 1 // key, value
	opWait                         // keys
	opAdd                          // key, delta as decimal text
	opKeys                         // prefix
	opDelete                       // key
	opWill                         // key, value
	opCancel                       // answer the wait of this id now
	opLeave                        // clean end: no will
	opDone                         // answer: what was asked for
	opMissing                      // answer to a cancelled wait: the missing keys
	opFailed                       // answer: why not
	opEnd                          // one past the last
)

// message is a frame's content: on the wire
// length u32 | operation u8 | id u64 | parts u32 | (length u32, bytes) per part,
// little-endian, length counting what follows it.
type message struct {
	op    operation
	id    uint64
	parts [][]byte
}

const messageHead = 1 + 8 + 4

var errTooLarge = fmt.Errorf("larger than a frame of %d bytes", MaxFrame)

func (m message) append(b []byte) ([]byte, error) {
	n := messageHead
	for _, p := range m.parts {
		n += 4 + len(p)
		if n > MaxFrame {
			return nil, errTooLarge
		}
	}
	if len(m.parts) > maxParts {
		return nil, errTooLarge
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = append(b, byte(m.op))
	b = binary.LittleEndian.AppendUint64(b, m.id)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.parts)))
	for _, p := range m.parts {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b, nil
}

// parse reads the content of a frame; the parts share b's memory.
func parse(b []byte) (message, error) {
	if len(b) < messageHead {
		return message{}, errors.New("frame shorter than its head")
	}
	m := message{op: operation(b[0]), id: binary.LittleEndian.Uint64(b[1:])}
	if m.op == 0 || m.op >= opEnd {
		return message{}, fmt.Errorf("unknown operation %d", b[0])
	}
	count := binary.LittleEndian.Uint32(b[9:])
	b = b[messageHead:]
	if count > maxParts || int(count) > len(b)/4 {
		return message{}, fmt.Errorf("frame of %d bytes claims %d parts", len(b), count)
	}
	m.parts = make([][]byte, count)
	for i := range m.parts {
		if len(b) < 4 {
			return message{}, errors.New("frame ends inside its parts")
		}
		n := binary.LittleEndian.Uint32(b)
		b = b[4:]
		if uint64(n) > uint64(len(b)) {
			return message{}, errors.New("frame ends inside a part")
		}
		m.parts[i], b = b[:n:n], b[n:]
	}
	if len(b) != 0 {
		return message{}, fmt.Errorf("%d bytes after the last part", len(b))
	}
	return m, nil
}

// readMessage reads one frame; its memory is the message's own.
func readMessage(r io.Reader) (message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return message{}, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > MaxFrame {
		return message{}, fmt.Errorf("frame of %d bytes: %w", n, errTooLarge)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return message{}, err
	}
	return parse(b)
}

// need checks the number of parts of a request.
func (m message) need(n int) error {
	if len(m.parts) != n {
		return fmt.Errorf("operation %d with %d parts instead of %d", m.op, len(m.parts), n)
	}
	return nil
}
