package collective

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// smallLimit is the length of values that travel in one message with their
// header, which is sent without waiting for the receiver.
const smallLimit = EagerSize - headerSize

// SegmentSize is what Transport.Segment is where a message costs little: the grain
// in which a chunk is passed on while it arrives. Transports for which that
// matters lend what will be reduced in smaller pieces, so that it is reduced while
// it is in the cache.
const SegmentSize = 1 << 20

// receiver receives values with headers on one goroutine.
type receiver struct {
	group   *Group
	ctx     context.Context
	tag     Tag
	latest  *atomic.Int64
	stage   []byte
	refused []bool   // by rank: the transport lends none of its bytes
	taken   []uint32 // messages from each rank so far; nil: they are numbered otherwise
	pace    pace
	packing
	unpacked []byte

	// The message that is awaited.
	peer int
	want header
	intake
	at   int // elements that have arrived
	part int // and that the next small message has

	small, more func([]byte) error // method values, made once
	pair        [2]device.Buf
}

// intake is what happens to values.
type intake struct {
	into   device.Buf
	reduce bool
	left   device.Buf // where opens: into becomes left reduced with the values
	opens  bool
}

func (r *receiver) init(g *Group, ctx context.Context, tag Tag, latest *atomic.Int64) {
	r.group, r.ctx, r.tag, r.latest = g, ctx, tag, latest
	r.refused = make([]bool, len(g.ranks))
	r.small, r.more = r.takeSmall, r.takeSegment
}

// receive waits for values of a peer and stores or reduces them.
func (r *receiver) receive(peer int, want header, in intake, needs []need) error {
	r.peer, r.want, r.intake, r.at = peer, want, in, 0
	r.pace.needs = needs
	r.count(peer)
	size, unit := in.into.Size(), in.into.Type.Size()
	if size <= smallLimit {
		return r.receiveSmall(in.into.Len)
	}
	if _, packs := r.packing.kind(peer, in.into); packs {
		return r.receivePieces(peer)
	}
	r.stage = grown(r.stage, headerSize)
	if err := r.group.transport.Recv(r.ctx, r.group.ranks[peer], r.tag, r.stage); err != nil {
		return r.explain(err)
	}
	if err := r.verify(r.stage); err != nil {
		return err
	}
	step := r.group.transport.Segment(r.group.ranks[peer]) / unit
	for r.at < in.into.Len {
		n := min(step, in.into.Len-r.at)
		if err := r.pace.ready(r.ctx, r.at, r.at+n); err != nil {
			return err
		}
		var err error
		if in.reduce {
			start := r.at
			err = r.message(n*unit, r.more)
			if err == nil && r.at != start+n {
				err = &LengthError{Peer: r.group.ranks[peer], Tag: r.tag, Want: n * unit, Got: (r.at - start) * unit}
			}
		} else {
			err = r.group.transport.Recv(r.ctx, r.group.ranks[peer], r.tag, in.into.Bytes()[r.at*unit:(r.at+n)*unit])
			if err == nil { // else the sender beside would pass on what has not come
				r.passed(n)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count numbers a message from a peer.
func (r *receiver) count(peer int) {
	if r.taken != nil {
		r.taken[peer]++
		r.want.number = r.taken[peer]
	}
}

// receiveSmall takes n elements that come in one message with their header.
func (r *receiver) receiveSmall(n int) error {
	if err := r.pace.ready(r.ctx, r.at, r.at+n); err != nil {
		return err
	}
	r.part = n
	return r.message(headerSize+n*r.into.Type.Size(), r.small)
}

func (r *receiver) passed(n int) {
	r.at += n
	r.pace.done(n)
}

// message hands the next message to use, in place where the transport can.
func (r *receiver) message(length int, use func([]byte) error) error {
	from := r.group.ranks[r.peer]
	if !r.refused[r.peer] {
		offered, err := r.group.transport.RecvInPlace(r.ctx, from, r.tag, use)
		if offered || err != nil {
			return err
		}
		r.refused[r.peer] = true
	}
	r.stage = grown(r.stage, length)
	if err := r.group.transport.Recv(r.ctx, from, r.tag, r.stage); err != nil {
		return r.explain(err)
	}
	return use(r.stage)
}

func (r *receiver) takeSmall(b []byte) error {
	packed := len(b) > headerSize && b[packedFlag] == 1
	if want := headerSize + r.part*r.into.Type.Size(); len(b) != want && !packed {
		return r.explain(&LengthError{Peer: r.group.ranks[r.peer], Tag: r.tag, Want: want, Got: len(b), Head: b[:min(len(b), HeadSize)]})
	}
	if err := r.verify(b); err != nil {
		return err
	}
	if packed {
		return r.unpack(b[headerSize:])
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
	n := len(b) / size
	defer r.passed(n)
	into := r.into.Slice(r.at, r.at+n)
	switch {
	case n == 0:
		return
	case !r.reduce:
		copy(into.Bytes(), b)
		return
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(size) != 0 {
		b = append([]byte(nil), b...) // lent at an odd place
	}
	values := device.FromBytes(r.into.Type, b)
	if r.opens {
		r.pair = [2]device.Buf{r.left.Slice(r.at, r.at+n), values}
		combineInto(r.group.reducer, r.want.op, into, r.pair[:])
		return
	}
	r.group.reducer.Reduce(r.want.op.kernel(), into, values)
}

// combineInto sets into to the reduction of two buffers.
func combineInto(reducer Reducer, op Op, into device.Buf, pair []device.Buf) {
	if op == Sum || op == Mean {
		reducer.Fold(into, pair)
		return
	}
	copy(into.Bytes(), pair[0].Bytes())
	reducer.Reduce(op.kernel(), into, pair[1])
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
	return r.group.mismatch(r.want, r.peer, theirs, length.Want-headerSize, length.Got-headerSize)
}
