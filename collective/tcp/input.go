package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync/atomic"
	"time"
)

const (
	readAhead = 64 << 10
	direct    = 8 << 10   // so much of a payload is read to where it belongs
	lendSize  = 256 << 10 // what RecvInPlace is lent of a large message at once
)

// phase is what comes next in the stream.
type phase uint8

const (
	phaseHeader phase = iota
	phasePayload
	phaseTrailer
)

// input is the state of who reads, between any two bytes.
type input struct {
	buf      []byte // read ahead; buf[from:to] is not consumed yet
	from, to int
	phase    phase
	h        header
	at       int    // bytes of the payload that have come
	sum      uint32 // CRC32C of the payload so far

	// Where the payload goes: a receive's memory from base on, which link.mu
	// guards; an eager message's frame; the head of an announcement; nowhere.
	into    *receive
	base    int
	eager   *frame
	small   []byte
	message [64]byte
	dropped []byte // made when needed

	lend   []byte // what is lent to into.use, made when needed
	filled int
	used   int // bytes of the payload that use has seen

	handled atomic.Uint32 // frames
}

// pump handles the next part of what has arrived. It returns false when it would
// have to wait and wait is false.
func (s *socket) pump(wait bool) (bool, error) {
	in := &s.in
	switch in.phase {
	case phaseHeader:
		b, err := s.next(headerLen, wait)
		if b == nil {
			return err == nil && wait, err
		}
		if table := s.link.transport.table; table != nil && binary.LittleEndian.Uint32(b[28:]) != crc32.Checksum(b[:28], table) {
			return false, fmt.Errorf("corrupt stream: the checksum of a header from rank %d is wrong", s.link.peer)
		}
		if in.h, err = parseHeader(b); err != nil {
			return false, err
		}
		return true, s.begin()
	case phasePayload:
		return s.payload(wait)
	}
	b, err := s.next(trailerLen, wait)
	if b == nil {
		return err == nil && wait, err
	}
	intact, err := s.verify(b)
	if err != nil {
		return false, err
	}
	return true, s.complete(intact)
}

// verify reads a trailer: whether the payload is the sender's.
func (s *socket) verify(trailer []byte) (intact bool, err error) {
	table := s.link.transport.table
	status := binary.LittleEndian.Uint32(trailer)
	if table != nil {
		sum := uint32(0)
		if status == 0 {
			sum = s.in.sum
		}
		if crc32.Update(sum, table, trailer[:4]) != binary.LittleEndian.Uint32(trailer[4:]) {
			return false, s.corrupt()
		}
	}
	if status > 1 {
		return false, fmt.Errorf("broken stream: trailer %#x", status)
	}
	return status == 0, nil
}

// next returns n bytes of the stream, which are consumed, or nil when they have
// not all come.
func (s *socket) next(n int, wait bool) ([]byte, error) {
	in := &s.in
	if in.to-in.from < n {
		if in.from > 0 {
			copy(in.buf, in.buf[in.from:in.to])
			in.from, in.to = 0, in.to-in.from
		}
		free := in.buf[in.to:]
		if in.h.payload() >= direct { // the frame that follows will be like it: leave its payload
			free = free[:n-in.to]
			if in.phase == phaseTrailer {
				free = free[:n-in.to+headerLen]
			}
		}
		k, err := s.read(free, wait)
		in.to += k
		if in.to < n {
			return nil, err
		}
	}
	b := in.buf[in.from : in.from+n]
	in.from += n
	return b, nil
}

// payload takes some of the payload, or ends the frame.
func (s *socket) payload(wait bool) (bool, error) {
	in := &s.in
	left := in.h.payload() - in.at
	if left == 0 {
		if in.h.trailer(s.link.transport.table) > 0 {
			in.phase = phaseTrailer
			return true, nil
		}
		return true, s.complete(true)
	}
	dst := s.target(left)
	k := 0
	if in.from < in.to {
		k = copy(dst, in.buf[in.from:in.to])
		in.from += k
	} else {
		var err error
		if len(dst) >= direct {
			k, err = s.read(dst, wait)
		} else {
			in.from = 0
			in.to, err = s.read(in.buf, wait)
			k = copy(dst, in.buf[:in.to])
			in.from = k
		}
		if err != nil || k == 0 {
			return err == nil && wait, err
		}
	}
	if table := s.link.transport.table; table != nil {
		in.sum = crc32.Update(in.sum, table, dst[:k])
	}
	in.at += k
	s.passOn(k)
	return true, nil
}

// target is where the next bytes go, at most left of them. A receive that has
// been given up is let go of.
func (s *socket) target(left int) []byte {
	in, l := &s.in, s.link
	switch {
	case in.eager != nil:
		return in.eager.b[in.at:]
	case in.small != nil:
		return in.small[in.at:]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := in.into; r != nil && r.giveUp != nil {
		l.letGo(s)
	}
	r := in.into
	switch {
	case r != nil && r.use == nil:
		at := in.base + in.at
		return r.buf[at : at+left]
	case r != nil && in.at >= in.used:
		if in.lend == nil {
			in.lend = make([]byte, lendSize)
		}
		return in.lend[in.filled:min(in.filled+left, lendSize)]
	case r != nil: // bytes that came before the connection broke
		left = min(left, in.used-in.at)
	}
	if in.dropped == nil {
		in.dropped = make([]byte, readAhead)
	}
	return in.dropped[:min(left, readAhead)]
}

// passOn lends what is there of a streamed message when it is enough. k bytes
// have just come. Eager messages are lent whole, in complete.
func (s *socket) passOn(k int) {
	in := &s.in
	if in.into == nil || in.into.use == nil || in.at <= in.used { // only readers change into
		return
	}
	in.filled += k
	if in.h.kind == kindData && (in.filled == lendSize || in.at == in.h.payload()) {
		s.lendOut()
	}
}

// lendOut has the receive use what is in in.lend.
func (s *socket) lendOut() {
	in, l := &s.in, s.link
	r := in.into
	err := r.use(in.lend[:in.filled])
	in.filled, in.used = 0, in.at
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.giveUp == nil {
		r.giveUp = err
	}
	l.letGo(s)
}

// read returns some bytes; none when it was interrupted or would have to wait
// and shall not.
func (s *socket) read(dst []byte, wait bool) (int, error) {
	var n int
	var err error
	if s.raw == nil || wait && !canPoll {
		n, err = s.conn.Read(dst)
	} else {
		n, err = s.polled.read(s.raw, dst, wait)
	}
	if n > 0 {
		return n, nil // an error comes again
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, s.conn.SetReadDeadline(time.Time{})
	}
	return 0, err
}

// corrupt is the error of a frame whose checksum is wrong.
func (s *socket) corrupt() error {
	h := s.in.h
	what := fmt.Sprintf("a frame of kind %d", h.kind)
	switch h.kind {
	case kindEager, kindAnnounce:
		what = fmt.Sprintf("a message of %d bytes with tag %#x", h.size, uint64(h.tag))
	case kindData:
		what = fmt.Sprintf("%d bytes", h.size)
		if r := s.in.into; r != nil {
			what = fmt.Sprintf("%d bytes of a message with tag %#x", h.size, uint64(r.tag))
		}
	}
	return fmt.Errorf("corrupt stream: the checksum of %s from rank %d is wrong", what, s.link.peer)
}

// isBroken tells errors of the connection, which a new one may cure, from those
// of what was said on it.
func isBroken(err error) bool {
	var fromSystem interface{ Timeout() bool } // net.OpError, syscall.Errno
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &fromSystem)
}
