package collective

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/wire/pack"
)

// What goes to another host is packed where GroupConfig.Packed says so, value by
// value as package pack does, below plans and codecs, which do not know. A message
// says in its header whether its values are: what has not become shorter goes as it
// is. Messages that are packed are eager ones, of which nobody has to know the
// length before, and large values go in pieces of them.
const (
	packedLeast = 4 << 10 // bytes of values that are worth it
	packedPiece = smallLimit - smallLimit%1024
	// packedWindow is how many pieces are sent to a peer between two answers, whatever
	// messages and calls they belong to; a sender is at most two windows ahead of its
	// receiver, which is what the transport has to keep of them.
	packedWindow = 32
	packedFlag   = headerSize - 1 // the byte of a header that is 1 where values are packed
)

// Packing says which messages of calls have their floats packed.
type Packing uint8

// The choices.
const (
	PackNothing Packing = iota
	PackAcrossHosts
	PackAll // but what stays in a rank
)

// FloatCodec is a Codec whose encoded values are 16-bit floats, little-endian: they
// can be packed.
type FloatCodec interface {
	Codec
	// Packs is the type of what it encodes; false: that is no floats after all.
	Packs() (pack.Kind, bool)
}

// packing says which of a group's values are packed.
type packing struct {
	apart  []bool    // by rank: what goes there is packed; nil: nothing is
	pieces []uint64  // by rank: of large values so far, in one direction
	floats bool      // the encoded values of the running call are
	coded  pack.Kind // this
}

// packingBelow is the rate of links, in bytes a second, that packing is for. It takes
// 0.09 ns a byte of values and unpacking 0.05 ns, with AVX2 0.13 and 0.09, which ranks
// that compute pay in time to compute, and saves 0.16 bytes of the link: at this rate
// 0.4 ns.
const packingBelow = 400e6

// PackingPays is collective over a transport that no group uses yet. Of links as
// MeasureLinks has found them it says, the same on all ranks, whether to pack what goes
// between hosts: where those links are slow and all ranks' processors pack fast.
func PackingPays(ctx context.Context, t Transport, links plan.Links) (bool, error) {
	if rate := links.Across.BytesPerSecond; len(t.Hosts()) < 2 || rate <= 0 || rate >= packingBelow {
		return false, nil
	}
	return onAll(ctx, t, pack.Fast())
}

// onAll has rank 0 take from all others whether something is so on them, and tell them
// whether it is so on all.
func onAll(ctx context.Context, t Transport, here bool) (bool, error) {
	with := func(peer int, err error) (bool, error) {
		return false, fmt.Errorf("rank %d compares processors with rank %d: %w", t.Rank(), peer, err)
	}
	all, theirs := []byte{0}, []byte{0}
	if here {
		all[0] = 1
	}
	if t.Rank() != 0 {
		if err := t.Send(ctx, 0, linkTag, all); err != nil {
			return with(0, err)
		}
		if err := t.Recv(ctx, 0, linkTag, all); err != nil {
			return with(0, err)
		}
		return all[0] == 1, nil
	}
	for r := 1; r < t.Size(); r++ {
		if err := t.Recv(ctx, r, linkTag, theirs); err != nil {
			return with(r, err)
		}
		all[0] &= theirs[0]
	}
	for r := 1; r < t.Size(); r++ {
		if err := t.Send(ctx, r, linkTag, all); err != nil {
			return with(r, err)
		}
	}
	return all[0] == 1, nil
}

// newPacking is what goes in one direction in the group goes by.
func (g *Group) newPacking() packing {
	if g.config.Packed == PackNothing {
		return packing{}
	}
	p := packing{apart: make([]bool, len(g.ranks)), pieces: make([]uint64, len(g.ranks))}
	for _, host := range g.hosts {
		here := false
		for _, r := range host {
			here = here || r == g.rank
		}
		for _, r := range host {
			p.apart[r] = !here || g.config.Packed == PackAll && r != g.rank
		}
	}
	return p
}

// setCodec is told of every call, before its values.
func (p *packing) setCodec(c Codec) {
	p.floats = false
	if f, ok := c.(FloatCodec); ok {
		p.coded, p.floats = f.Packs()
	}
}

// kind is how values for a peer or from it are packed; false: they are not.
func (p *packing) kind(peer int, values device.Buf) (pack.Kind, bool) {
	if p.apart == nil || !p.apart[peer] || values.Size() < packedLeast {
		return 0, false
	}
	switch values.Type {
	case device.F32:
		return pack.F32, true
	case device.F16:
		return pack.F16, true
	case device.BF16:
		return pack.BF16, true
	case device.U8:
		return p.coded, p.floats
	}
	return 0, false
}

// sendPieces sends large values for another host. It waits for the receiver where it
// is too far ahead.
func (s *sender) sendPieces(peer int, h header, values device.Buf) error {
	s.peer.Store(int32(peer))
	defer s.peer.Store(-1)
	step := packedPiece / values.Type.Size()
	for lo := 0; lo < values.Len; lo += step {
		if sent := s.pieces[peer]; sent >= 2*packedWindow && sent%packedWindow == 0 {
			if err := s.group.transport.Recv(s.ctx, s.group.ranks[peer], s.group.tag(answerChannel), nil); err != nil {
				return err
			}
		}
		if err := s.sendSmall(peer, h, values, lo, min(lo+step, values.Len)); err != nil {
			return err
		}
		s.pieces[peer]++
	}
	return nil
}

// put stores values behind the header in the stage, packed if that is shorter, and
// returns the message.
func (s *sender) put(peer int, values device.Buf) []byte {
	b := values.Bytes()
	kind, packs := s.packing.kind(peer, values)
	if packs {
		n := pack.Encode(s.stage[headerSize:], b, kind)
		if packs = n < len(b); packs {
			s.stage[packedFlag] = 1
			s.saved += int64(len(b) - n)
			return s.stage[:headerSize+n]
		}
	}
	return s.stage[:headerSize+copy(s.stage[headerSize:], b)]
}

// stageFor is the memory that a message with values needs while it is made.
func (s *sender) stageFor(peer int, values device.Buf) int {
	if kind, packs := s.packing.kind(peer, values); packs {
		return headerSize + pack.Bound(kind, values.Size()/kind.Size())
	}
	return headerSize + values.Size()
}

// receivePieces is the other side of sendPieces.
func (r *receiver) receivePieces(peer int) error {
	step := packedPiece / r.into.Type.Size()
	for first := r.at; r.at < r.into.Len; {
		if r.at > first {
			r.count(peer)
		}
		if err := r.receiveSmall(min(step, r.into.Len-r.at)); err != nil {
			return err
		}
		if r.pieces[peer]++; r.pieces[peer]%packedWindow == 0 {
			if err := r.group.transport.Send(r.ctx, r.group.ranks[peer], r.group.tag(answerChannel), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpack stores or reduces the packed values of a message.
func (r *receiver) unpack(b []byte) error {
	part := r.into.Slice(r.at, r.at+r.part)
	kind, packs := r.packing.kind(r.peer, part)
	if !packs {
		return &peerFailure{r.peer, fmt.Errorf("it has packed %d %v, which is not asked for", part.Len, part.Type)}
	}
	values := part.Bytes()
	if r.reduce {
		r.unpacked = grown(r.unpacked, len(values))
		values = r.unpacked
	}
	if err := pack.Decode(values, b, kind); err != nil {
		return &peerFailure{r.peer, fmt.Errorf("its packed values: %w", err)}
	}
	if r.reduce {
		r.take(values)
	} else {
		r.passed(part.Len)
	}
	return nil
}
