package collective

import (
	"encoding/binary"
	"fmt"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// headerSize is what precedes the values of every message. It fits a
// LengthError's Head, so that even a misfitting message tells its call.
const headerSize = HeadSize

const headerVersion = 1

// pointToPoint is the kind of a message of an Exchange.
const pointToPoint plan.Kind = 254

// header says what call a message belongs to. Small messages carry it in front
// of the values, large ones are preceded by it, so it costs no round trip.
type header struct {
	kind      plan.Kind
	op        Op
	typ       device.Type
	root      int
	sequence  uint64
	count     int    // elements of the whole vector; 0 where ranks may differ
	bounds    uint32 // fingerprint of the cuts
	number    uint32 // of the message among those from its sender to its receiver
	algorithm string // its first 16 bytes travel
	latest    int64  // the latest start of the call that the sender knows of
}

func (h *header) encode(b []byte) {
	clear(b[:headerSize])
	b[0], b[1], b[2], b[3] = headerVersion, byte(h.kind), byte(h.op), byte(h.typ)
	binary.LittleEndian.PutUint32(b[4:], uint32(h.root))
	binary.LittleEndian.PutUint64(b[8:], h.sequence)
	binary.LittleEndian.PutUint64(b[16:], uint64(h.count))
	binary.LittleEndian.PutUint64(b[24:], uint64(h.latest))
	binary.LittleEndian.PutUint32(b[32:], h.bounds)
	binary.LittleEndian.PutUint32(b[36:], h.number)
	copy(b[40:56], h.algorithm)
}

// matches reports whether b is the header of the same call, and returns the
// latest start in it. It allocates nothing.
func (h *header) matches(b []byte) (latest int64, ok bool) {
	name := h.algorithm[:min(len(h.algorithm), 16)]
	n := 0
	for n < 16 && b[40+n] != 0 {
		n++
	}
	ok = b[0] == headerVersion && b[1] == byte(h.kind) && b[2] == byte(h.op) && b[3] == byte(h.typ) &&
		binary.LittleEndian.Uint32(b[4:]) == uint32(h.root) &&
		binary.LittleEndian.Uint64(b[8:]) == h.sequence &&
		binary.LittleEndian.Uint64(b[16:]) == uint64(h.count) &&
		binary.LittleEndian.Uint32(b[32:]) == h.bounds &&
		binary.LittleEndian.Uint32(b[36:]) == h.number &&
		string(b[40:40+n]) == name
	return int64(binary.LittleEndian.Uint64(b[24:])), ok
}

// decodeHeader reads any header; ok is false when b is none.
func decodeHeader(b []byte) (h header, ok bool) {
	if len(b) < headerSize || b[0] != headerVersion {
		return header{}, false
	}
	n := 0
	for n < 16 && b[40+n] != 0 {
		n++
	}
	h = header{
		kind: plan.Kind(b[1]), op: Op(b[2]), typ: device.Type(b[3]),
		root:      int(int32(binary.LittleEndian.Uint32(b[4:]))),
		sequence:  binary.LittleEndian.Uint64(b[8:]),
		count:     int(binary.LittleEndian.Uint64(b[16:])),
		latest:    int64(binary.LittleEndian.Uint64(b[24:])),
		bounds:    binary.LittleEndian.Uint32(b[32:]),
		number:    binary.LittleEndian.Uint32(b[36:]),
		algorithm: string(b[40 : 40+n]),
	}
	return h, true
}

// String is the call as errors print it.
func (h header) String() string {
	if h.kind == pointToPoint {
		return fmt.Sprintf("send of %d %v", h.count, h.typ)
	}
	s := h.kind.String()
	switch h.kind {
	case plan.Barrier:
		return s
	case allocation:
		s = "allocation"
	}
	if h.kind.Reduces() {
		s += " " + h.op.String()
	}
	switch h.kind {
	case plan.Broadcast, plan.Scatter:
		s += fmt.Sprintf(" from rank %d", h.root)
	case plan.Reduce, plan.Gather:
		s += fmt.Sprintf(" to rank %d", h.root)
	}
	if h.count > 0 {
		return s + fmt.Sprintf(" of %d %v", h.count, h.typ)
	}
	return s + fmt.Sprintf(" of %v", h.typ)
}

// MismatchError says that two ranks run different calls.
type MismatchError struct {
	Rank, Peer   int // as the transport counts
	Mine, Theirs string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("ranks run different calls: rank %d %s, rank %d %s", e.Rank, e.Mine, e.Peer, e.Theirs)
}

// mismatch builds the error for a peer's message of another call than h, or of the
// same call with other sizes.
func (g *Group) mismatch(h header, peer int, theirs header, want, got int) error {
	mine, other := fmt.Sprintf("call %d (%v", h.sequence, h), fmt.Sprintf("call %d (%v", theirs.sequence, theirs)
	switch {
	case h.algorithm != theirs.algorithm:
		mine, other = mine+" by "+h.algorithm, other+" by "+theirs.algorithm
	case h.bounds != theirs.bounds && h.kind == plan.Barrier:
		mine, other = mine+" for one sub-group", other+" for another"
	case h.bounds != theirs.bounds:
		mine, other = mine+", cut one way", other+", cut another way"
	}
	if mine == other && want != got {
		mine, other = mine+fmt.Sprintf(", a part of %d bytes", want), other+fmt.Sprintf(", a part of %d bytes", got)
	}
	if mine == other && h.number != theirs.number {
		return &peerFailure{peer, fmt.Errorf("a message was lost on the way: its message %d arrived in place of %d", theirs.number, h.number)}
	}
	return &MismatchError{Rank: g.ranks[g.rank], Peer: g.ranks[peer], Mine: mine + ")", Theirs: other + ")"}
}

func (o Op) String() string {
	switch o {
	case Sum:
		return "sum"
	case Prod:
		return "prod"
	case Max:
		return "max"
	case Min:
		return "min"
	case Mean:
		return "mean"
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}
