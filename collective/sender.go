package collective

import (
	"context"
	"sync/atomic"

	"github.com/gradfusion/gradfusion/device"
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
	packing
	saved int64 // bytes, by packing, since the call began
	pace  pace

	message struct { // that is sent when fill makes it
		peer   int
		header header
		values device.Buf
	}
	fill func([]byte) []byte // a method value, made once

	values, from int                    // elements of the message that is sent as it gets ready
	unit         int                    // bytes of an element
	ready        func(int) (int, error) // a method value, made once
}

// send hands values to a peer, which stores or reduces them. It does not wait
// with small ones.
func (s *sender) send(peer int, h header, values device.Buf, needs []need) error {
	g, size := s.group, values.Size()
	s.pace.needs = needs
	if size <= smallLimit {
		return s.sendSmall(peer, h, values, 0, values.Len)
	}
	if _, packs := s.packing.kind(peer, values); packs {
		return s.sendPieces(peer, h, values)
	}
	s.count(peer, &h)
	s.peer.Store(int32(peer))
	err := s.sendLarge(g.ranks[peer], h, values)
	s.peer.Store(-1)
	return err
}

// count numbers a message to a peer.
func (s *sender) count(peer int, h *header) {
	if s.sent != nil {
		s.sent[peer]++
		h.number = s.sent[peer]
	}
}

// sendSmall sends elements lo to hi in one message with their header.
func (s *sender) sendSmall(peer int, h header, values device.Buf, lo, hi int) error {
	s.count(peer, &h)
	if err := s.pace.ready(s.ctx, lo, hi); err != nil {
		return err
	}
	values = values.Slice(lo, hi)
	s.stage = grown(s.stage, s.stageFor(peer, values))
	s.message.peer, s.message.header, s.message.values = peer, h, values
	if s.fill == nil {
		s.fill = s.fillMessage
	}
	return s.group.transport.SendFilled(s.ctx, s.group.ranks[peer], s.tag, s.stage, s.fill)
}

// fillMessage makes the message that sendSmall sends, in b.
func (s *sender) fillMessage(b []byte) []byte {
	m, stage := &s.message, s.stage
	s.stage = b
	m.header.latest = s.latest.Load()
	m.header.encode(b)
	b = s.put(m.peer, m.values)
	s.stage = stage
	s.pace.done(m.values.Len)
	m.values = device.Buf{}
	return b
}

// sendLarge sends the header when the first values are ready, then the values.
func (s *sender) sendLarge(to int, h header, values device.Buf) error {
	unit := values.Type.Size()
	step := s.group.transport.Segment(to) / unit
	bytes := values.Bytes()
	if s.ready == nil {
		s.ready = s.moreReady
	}
	for lo := 0; lo < values.Len; lo += step {
		hi := min(lo+step, values.Len)
		s.from, s.values, s.unit = lo, hi-lo, unit
		if _, err := s.moreReady(0); err != nil {
			return err
		}
		if lo == 0 {
			s.stage = grown(s.stage, headerSize)
			h.latest = s.latest.Load()
			h.encode(s.stage)
			if err := s.group.transport.Send(s.ctx, to, s.tag, s.stage); err != nil {
				return err
			}
		}
		var err error
		if b := bytes[lo*unit : hi*unit]; len(b) <= SegmentSize {
			err = s.group.transport.Send(s.ctx, to, s.tag, b)
		} else {
			err = s.group.transport.SendAsReady(s.ctx, to, s.tag, b, s.ready)
		}
		if err != nil {
			return err
		}
		s.pace.done(hi - lo)
	}
	return nil
}

// moreReady waits for the next segment of the message after its first at bytes and
// returns its end.
func (s *sender) moreReady(at int) (int, error) {
	lo := at / s.unit
	hi := min(lo+SegmentSize/s.unit, s.values)
	if err := s.pace.ready(s.ctx, s.from+lo, s.from+hi); err != nil {
		return 0, err
	}
	return hi * s.unit, nil
}
