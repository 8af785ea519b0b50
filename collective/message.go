package collective

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

const (
	// smallLimit is the length of values that travel in one message with their
	// header, which is sent without waiting for the receiver.
	smallLimit = EagerSize - headerSize
	// Larger values travel in messages of this length. What will be reduced is
	// lent piece by piece by transports for which that matters, so that it is
	// reduced while it is in the cache.
	segment = 1 << 28
)

// sender sends values with headers from one goroutine.
type sender struct {
	group  *Group
	ctx    context.Context
	tag    Tag
	latest *atomic.Int64
	peer   atomic.Int32 // the rank that it sends to, or -1
	sent   []uint32     // messages to each rank so far; nil: they are numbered otherwise
	stage  []byte
}

// send hands values to a peer, which stores or reduces them. It does not wait
// with small ones.
func (s *sender) send(peer int, h header, values []byte, reduce bool) error {
	g := s.group
	h.latest = s.latest.Load()
	if s.sent != nil {
		s.sent[peer]++
		h.number = s.sent[peer]
	}
	size := headerSize
	if len(values) <= smallLimit {
		size += len(values)
	}
	s.stage = grown(s.stage, size)
	h.encode(s.stage)
	if len(values) <= smallLimit {
		copy(s.stage[headerSize:], values)
		return g.transport.Send(s.ctx, g.ranks[peer], s.tag, s.stage)
	}
	s.peer.Store(int32(peer))
	defer s.peer.Store(-1)
	if err := g.transport.Send(s.ctx, g.ranks[peer], s.tag, s.stage); err != nil {
		return err
	}
	for lo := 0; lo < len(values); lo += segment {
		if err := g.transport.Send(s.ctx, g.ranks[peer], s.tag, values[lo:min(lo+segment, len(values))]); err != nil {
			return err
		}
	}
	return nil
}

// receiver receives values with headers on one goroutine.
type receiver struct {
	group   *Group
	ctx     context.Context
	tag     Tag
	latest  *atomic.Int64
	stage   []byte
	refused bool     // the transport lends no bytes
	taken   []uint32 // messages from each rank so far; nil: they are numbered otherwise

	// The message that is awaited.
	peer   int
	want   header
	into   device.Buf
	reduce bool
	at     int // bytes of into that have arrived

	small, more func([]byte) error // method values, made once
}

func (r *receiver) init(g *Group, ctx context.Context, tag Tag, latest *atomic.Int64) {
	r.group, r.ctx, r.tag, r.latest = g, ctx, tag, latest
	r.small, r.more = r.takeSmall, r.takeSegment
}

// receive waits for values of a peer and stores or reduces them.
func (r *receiver) receive(peer int, want header, into device.Buf, reduce bool) error {
	r.peer, r.want, r.into, r.reduce, r.at = peer, want, into, reduce, 0
	if r.taken != nil {
		r.taken[peer]++
		r.want.number = r.taken[peer]
	}
	size := into.Size()
	if size <= smallLimit {
		return r.message(headerSize+size, r.small)
	}
	r.stage = grown(r.stage, headerSize)
	if err := r.group.transport.Recv(r.ctx, r.group.ranks[peer], r.tag, r.stage); err != nil {
		return r.explain(err)
	}
	if err := r.verify(r.stage); err != nil {
		return err
	}
	for r.at < size {
		length := min(segment, size-r.at)
		var err error
		if reduce {
			start := r.at
			err = r.message(length, r.more)
			if err == nil && r.at != start+length {
				err = &LengthError{Peer: r.group.ranks[peer], Tag: r.tag, Want: length, Got: r.at - start}
			}
		} else {
			err = r.group.transport.Recv(r.ctx, r.group.ranks[peer], r.tag, into.Bytes()[r.at:r.at+length])
			r.at += length
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// message hands the next message to use, in place where the transport can.
func (r *receiver) message(length int, use func([]byte) error) error {
	from := r.group.ranks[r.peer]
	if !r.refused {
		offered, err := r.group.transport.RecvInPlace(r.ctx, from, r.tag, use)
		if offered || err != nil {
			return err
		}
		r.refused = true
	}
	r.stage = grown(r.stage, length)
	if err := r.group.transport.Recv(r.ctx, from, r.tag, r.stage); err != nil {
		return r.explain(err)
	}
	return use(r.stage)
}

func (r *receiver) takeSmall(b []byte) error {
	if want := headerSize + r.into.Size(); len(b) != want {
		return r.explain(&LengthError{Peer: r.group.ranks[r.peer], Tag: r.tag, Want: want, Got: len(b), Head: b[:min(len(b), HeadSize)]})
	}
	if err := r.verify(b); err != nil {
		return err
	}
	r.take(b[headerSize:])
	return nil
}

// takeSegment takes a message or a piece of one.
func (r *receiver) takeSegment(b []byte) error {
	if left := r.into.Size() - r.at; len(b) > left {
		return &LengthError{Peer: r.group.ranks[r.peer], Tag: r.tag, Want: left, Got: len(b)}
	}
	r.take(b)
	return nil
}

// take stores or reduces the next bytes.
func (r *receiver) take(b []byte) {
	size := r.into.Type.Size()
	into := r.into.Slice(r.at/size, (r.at+len(b))/size)
	r.at += len(b)
	if !r.reduce {
		copy(into.Bytes(), b)
		return
	}
	if len(b) == 0 {
		return
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(size) != 0 {
		b = append([]byte(nil), b...) // lent at an odd place
	}
	r.group.reducer.Reduce(r.want.op.kernel(), into, device.FromBytes(r.into.Type, b))
}

// verify compares a header with the awaited one and learns the latest start.
func (r *receiver) verify(b []byte) error {
	latest, ok := r.want.matches(b)
	if !ok {
		return r.explain(&LengthError{Head: b[:headerSize]})
	}
	r.learn(latest)
	return nil
}

// learn notes a rank's start of the call.
func (r *receiver) learn(latest int64) {
	for {
		known := r.latest.Load()
		if latest <= known || r.latest.CompareAndSwap(known, latest) {
			return
		}
	}
}

// explain turns a misfitting message into an error that says what the peer
// runs.
func (r *receiver) explain(err error) error {
	var length *LengthError
	if !errors.As(err, &length) {
		return err
	}
	theirs, ok := decodeHeader(length.Head)
	if !ok {
		return err
	}
	return r.want.mismatch(r.group.rank, r.peer, theirs, length.Want-headerSize, length.Got-headerSize)
}

// grown returns b with n bytes, whose content is undefined.
func grown(b []byte, n int) []byte {
	if cap(b) >= n {
		return b[:n]
	}
	return aligned(n)
}

// aligned returns n zeroed bytes that start at a multiple of device.Align.
func aligned(n int) []byte {
	b := make([]byte, n+device.Align)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % device.Align
	return b[skip : int(skip)+n : int(skip)+n]
}
