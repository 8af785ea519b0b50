package tcp

import (
	"errors"
	"os"
	"time"

	"github.com/gradfusion/gradfusion/collective"
)

const readAhead = 32 << 10

// input is the reader's state.
type input struct {
	head        [headerLen]byte
	messageHead [collective.HeadSize]byte
	buf         []byte // read ahead; buf[from:to] is not consumed yet
	from        int
	to          int
	current     *receive // whose buffer the reader is filling; guarded by link.mu
	dropped     []byte   // where unwanted bytes go, made when needed
}

// deliver moves the next n bytes of the stream to the current receive's buffer,
// from offset on. When that gives up, it ends and the rest is dropped.
func (l *link) deliver(offset, n int) error {
	for n > 0 {
		l.mu.Lock()
		r := l.in.current
		if r != nil && r.giveUp != nil {
			l.in.current = nil
			l.endReceive(r, r.giveUp)
			r = nil
		}
		l.mu.Unlock()
		var dst []byte
		if r != nil {
			dst = r.buf[offset : offset+n]
		} else {
			if l.in.dropped == nil {
				l.in.dropped = make([]byte, readAhead)
			}
			dst = l.in.dropped[:min(n, readAhead)]
		}
		k, err := l.take(dst)
		offset += k
		n -= k
		if err == nil {
			continue
		}
		l.mu.Lock()
		if r := l.in.current; r != nil {
			l.in.current = nil
			cause := r.giveUp
			if cause == nil {
				cause = l.lost(err)
			}
			l.endReceive(r, cause)
		}
		l.mu.Unlock()
		return err
	}
	return nil
}

// fill reads exactly len(dst) bytes.
func (l *link) fill(dst []byte) error {
	for len(dst) > 0 {
		k, err := l.take(dst)
		if err != nil {
			return err
		}
		dst = dst[k:]
	}
	return nil
}

// take reads some bytes; none when giveUpReceive interrupted it.
func (l *link) take(dst []byte) (int, error) {
	in := &l.in
	if in.from == in.to {
		if len(dst) >= len(in.buf) {
			return l.readSome(dst)
		}
		k, err := l.readSome(in.buf)
		in.from, in.to = 0, k
		if err != nil {
			return 0, err
		}
	}
	k := copy(dst, in.buf[in.from:in.to])
	in.from += k
	return k, nil
}

func (l *link) readSome(dst []byte) (int, error) {
	n, err := l.conn.Read(dst)
	if n > 0 {
		return n, nil // an error comes again
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, l.conn.SetReadDeadline(time.Time{})
	}
	return 0, err
}
