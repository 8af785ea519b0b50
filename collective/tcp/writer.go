package tcp

import (
	"errors"
	"os"
	"time"

	"github.com/gradfusion/gradfusion/collective"
)

// writeLoop writes what callers could not write at once. Whoever kicks it has
// set out.busy, which it clears when nothing is left.
func (s *socket) writeLoop() {
	for {
		select {
		case <-s.out.kick:
		case <-s.stop:
			return
		}
		if s.drain() != nil {
			// What the peer said last is still to be read; the reader then meets the
			// end of the stream and decides what that means.
			_ = s.tcp.CloseRead()
			o := &s.out
			o.mu.Lock()
			o.broken = true
			o.rest()
			o.mu.Unlock()
		}
	}
}

// drain writes until nothing is left and rests, or until an error.
func (s *socket) drain() error {
	o := &s.out
	for {
		o.mu.Lock()
		if o.broken || o.dead {
			o.rest()
			o.mu.Unlock()
			return nil
		}
		f, ack := o.cursor, o.ackDue
		o.ackDue = false
		o.mu.Unlock()
		var err error
		switch {
		case ack && (f == nil || f.sent == 0):
			err = s.writeAck()
		case f != nil:
			err = s.writeFrame(f)
		default:
			if s.takeJob() {
				continue
			}
			o.mu.Lock()
			if o.cursor == nil && !o.ackDue && !s.link.hasJobs.Load() {
				o.rest()
				o.mu.Unlock()
				return nil
			}
			o.mu.Unlock()
		}
		if err != nil {
			return err
		}
	}
}

func (s *socket) writeAck() error {
	b := s.out.ack[:]
	header{kind: kindAck}.put(b)
	s.stamp(b)
	for len(b) > 0 {
		n, err := s.conn.Write(b)
		b = b[n:]
		if err != nil && !s.interrupted(err) {
			return err
		}
	}
	return nil
}

// interrupted reports whether err is only giveUpSend's interruption.
func (s *socket) interrupted(err error) bool {
	return s.raw != nil && errors.Is(err, os.ErrDeadlineExceeded) && s.conn.SetWriteDeadline(time.Time{}) == nil
}

// writeFrame writes the rest of a frame that is in the list.
func (s *socket) writeFrame(f *frame) error {
	var err error
	if f.send != nil && s.borrow(f) {
		err = s.writePart(f)
	} else {
		if f.sent == 0 {
			s.stamp(f.b)
		}
		for f.sent < len(f.b) && err == nil {
			var n int
			n, err = s.conn.Write(f.b[f.sent:])
			f.sent += n
			if err != nil && s.interrupted(err) {
				err = nil
			}
		}
	}
	if f.sent < f.length() {
		return err
	}
	s.out.mu.Lock()
	s.out.advance()
	s.out.mu.Unlock()
	return err
}

// takeJob makes the next part of a granted message a frame.
func (s *socket) takeJob() bool {
	l := s.link
	l.mu.Lock()
	defer l.mu.Unlock()
	job := l.jobs
	if job == nil {
		return false
	}
	part := job.buf[job.taken:min(job.taken+l.partSize(job, s), job.ready)]
	h := header{kind: kindData, id: job.slot, tag: collective.Tag(job.taken), size: uint64(len(part))}
	var f *frame
	if s.raw == nil { // encryption copies anyway
		f = l.frame(h, part)
	} else {
		f = l.transport.pool.get(headerLen)
		f.part, f.send, f.serial = part, job, job.serial
		h.put(f.b)
	}
	job.taken += len(part)
	l.removeJob(job)
	if job.taken < job.ready {
		l.addJob(job) // behind the others
	}
	s.out.append(l.transport, f)
	return true
}

// partSize is how much of a message the next frame takes: all sockets get some.
func (l *link) partSize(job *send, s *socket) int {
	n := l.transport.segment
	if s.raw == nil {
		n = eagerMax
	}
	if k := len(l.sockets); k > 1 {
		const least = 64 << 10
		n = min(n, max((len(job.buf)+k-1)/k, least))
	}
	return (n + 4095) &^ 4095
}

// borrow lets the writer read the memory of f's send, or makes the frame say
// that its bytes will not come.
func (s *socket) borrow(f *frame) bool {
	l := s.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.send.serial == f.serial && f.send.giveUp == nil {
		f.send.writing++
		s.out.current = f.send
		return true
	}
	h, _ := parseHeader(f.b)
	h.kind, h.tag = kindVoid, 0
	h.put(f.b)
	f.part, f.send = nil, nil
	return false
}

// giveBack ends borrow's loan; the send ends with it when that waited.
func (s *socket) giveBack(job *send) {
	l := s.link
	s.out.current = nil
	if job.writing--; job.writing > 0 || job.ended {
		return
	}
	switch {
	case job.giveUp != nil:
		l.endSend(job, job.giveUp)
	case job.delivered:
		l.endSend(job, nil)
	}
}

// writePart writes header, bytes of the caller and trailer in one call where the
// socket lets it. When the send is given up meanwhile, zeros fill the frame and
// the trailer says so.
func (s *socket) writePart(f *frame) error {
	o, l, job := &s.out, s.link, f.send
	s.stamp(f.b)
	seal(o.trailer[:], f.part, l.transport.table)
	o.pieces = [3][]byte{f.b, f.part, o.trailer[:]}
	o.vector = o.pieces[:]
	lent := true
	for f.sent < f.length() {
		n, err := o.vector.WriteTo(s.conn)
		f.sent += int(n)
		if err == nil {
			continue
		}
		l.mu.Lock()
		broken := !s.interrupted(err)
		if lent && (broken || job.giveUp != nil) {
			lent = false
			s.giveBack(job)
		}
		l.mu.Unlock()
		if broken {
			o.pieces, o.vector = [3][]byte{}, nil
			return err
		}
		if !lent {
			o.vector = s.filling(f)
		}
	}
	o.pieces, o.vector = [3][]byte{}, nil
	if lent {
		l.mu.Lock()
		s.giveBack(job)
		l.mu.Unlock()
	}
	return nil
}

// filling is the rest of a frame, with zeros in place of the payload.
func (s *socket) filling(f *frame) [][]byte {
	o := &s.out
	if len(o.zeros) < len(f.part) {
		o.zeros = make([]byte, len(f.part))
	}
	spoil(o.trailer[:], s.link.transport.table)
	skip := f.sent
	o.pieces = [3][]byte{f.b, o.zeros[:len(f.part)], o.trailer[:]}
	for i := range o.pieces {
		n := min(skip, len(o.pieces[i]))
		o.pieces[i] = o.pieces[i][n:]
		skip -= n
	}
	return o.pieces[:]
}
