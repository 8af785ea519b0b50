package tcp

import (
	"errors"
	"os"
	"time"
)

// writeLoop writes what callers could not write at once. Whoever kicks it has
// set out.busy, which it clears when nothing is left.
func (l *link) writeLoop() {
	for {
		select {
		case <-l.out.kick:
		case <-l.stop:
			return
		}
		if l.drain() != nil {
			l.silence()
			return
		}
	}
}

func (l *link) drain() error {
	o := &l.out
	for {
		o.mu.Lock()
		f := o.pop()
		var s *send
		if f == nil {
			s = o.popJob()
		}
		if f == nil && s == nil {
			o.busy = false
			o.mu.Unlock()
			return nil
		}
		o.mu.Unlock()
		var err error
		if f != nil {
			err = l.writeFrame(f)
			l.transport.pool.put(f)
		} else {
			err = l.writePart(s)
		}
		if err != nil {
			return err
		}
	}
}

func (l *link) writeFrame(f *buffer) error {
	for f.sent < len(f.b) {
		n, err := l.conn.Write(f.b[f.sent:])
		f.sent += n
		if err != nil && !l.interruptedWrite(err) {
			return err
		}
	}
	return nil
}

// interruptedWrite reports whether err is only giveUpSend's interruption.
func (l *link) interruptedWrite(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && l.conn.SetWriteDeadline(time.Time{}) == nil
}

// writePart streams one frame of s, then queues s again behind the others.
func (l *link) writePart(s *send) error {
	l.mu.Lock()
	if s.giveUp != nil {
		l.push(header{kind: kindAbort, id: s.slot})
		l.finish(s, s.giveUp)
		l.mu.Unlock()
		return nil
	}
	s.writing = true
	part := s.buf[s.sent:min(s.sent+dataMax, len(s.buf))]
	slot := s.slot
	l.mu.Unlock()

	whole, err := l.writeData(s, slot, part)
	if err != nil || !whole {
		return err
	}
	l.mu.Lock()
	s.writing = false
	s.sent += len(part)
	if s.sent == len(s.buf) {
		l.finish(s, nil)
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	l.out.addJob(s) // busy is set: no kick
	return nil
}

// writeData writes a frame in one call where the socket lets it. When s is given
// up meanwhile, s ends at once, zeros fill the frame and the peer is told;
// whole is false then.
func (l *link) writeData(s *send, slot uint32, part []byte) (whole bool, err error) {
	o := &l.out
	header{kind: kindData, id: slot, size: uint64(len(part))}.put(o.head[:])
	o.pair = [2][]byte{o.head[:], part}
	o.vector = o.pair[:]
	left := headerLen + len(part)
	whole = true
	for left > 0 {
		n, err := o.vector.WriteTo(l.conn)
		left -= int(n)
		if err == nil {
			continue
		}
		interrupted := l.interruptedWrite(err)
		l.mu.Lock()
		if whole && s.giveUp != nil {
			whole = false
			l.finish(s, s.giveUp)
			o.vector = filling(o.head[:], left, len(part))
		}
		if !interrupted {
			if whole {
				s.writing = false
			}
			l.mute = true
			l.mu.Unlock()
			return whole, err
		}
		l.mu.Unlock()
	}
	if !whole {
		l.push(header{kind: kindAbort, id: slot})
	}
	o.pair[1], o.vector = nil, nil
	return whole, nil
}

// filling is the rest of a frame of which left bytes are not written, with zeros
// in place of the payload.
func filling(head []byte, left, payload int) [][]byte {
	if left <= payload {
		return [][]byte{make([]byte, left)}
	}
	return [][]byte{head[len(head)-(left-payload):], make([]byte, payload)}
}

// silence ends writing after an error. The reader learns of the end too, after
// what the peer said last; it decides what that means for the calls.
func (l *link) silence() {
	l.mu.Lock()
	l.mute = true
	l.out.mu.Lock()
	l.out.dead = true
	l.out.first, l.out.last = nil, nil
	for l.out.popJob() != nil { // they are still in sends
	}
	l.out.mu.Unlock()
	l.mu.Unlock()
	_ = l.conn.CloseRead()
}
