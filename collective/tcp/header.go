package tcp

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gradfusion/gradfusion/collective"
)

const (
	headerLen = 24
	eagerMax  = collective.EagerSize // largest message sent without a grant
	dataMax   = 1 << 20              // largest piece of a message in one frame
	idMax     = 1 << 16              // messages in flight per direction of a pair
)

// kind is what a frame is.
type kind uint8

const (
	kindEager    kind = iota + 1 // tag, size; the message follows
	kindAnnounce                 // id, tag, size: a message waits; its head follows
	kindGrant                    // id of the announcement, tag holds the receiver's slot
	kindDiscard                  // id: the announced message is consumed, its bytes are not wanted
	kindWithdraw                 // id: the announcement is taken back; Discard answers
	kindData                     // id is the receiver's slot, size; the bytes follow
	kindAbort                    // id is the receiver's slot: the rest will not come
	kindCredit                   // size: bytes of eager messages that have left the buffers
	kindGoodbye                  // the sender has closed; tag is 1 + the rank it had lost, or 0
	kindFarewell                 // answer to Goodbye
	kindEnd
)

// header precedes every frame: kind u8, three zero bytes, id u32, tag u64,
// size u64, little-endian.
type header struct {
	kind kind
	id   uint32
	tag  collective.Tag
	size uint64
}

func (h header) put(b []byte) {
	binary.LittleEndian.PutUint32(b, uint32(h.kind))
	binary.LittleEndian.PutUint32(b[4:], h.id)
	binary.LittleEndian.PutUint64(b[8:], uint64(h.tag))
	binary.LittleEndian.PutUint64(b[16:], h.size)
}

// parseHeader reads and checks a header; b has headerLen bytes.
func parseHeader(b []byte) (header, error) {
	first := binary.LittleEndian.Uint32(b)
	h := header{
		kind: kind(first),
		id:   binary.LittleEndian.Uint32(b[4:]),
		tag:  collective.Tag(binary.LittleEndian.Uint64(b[8:])),
		size: binary.LittleEndian.Uint64(b[16:]),
	}
	if first == 0 || first >= uint32(kindEnd) {
		return h, fmt.Errorf("broken stream: frame of unknown kind %#x", first)
	}
	if h.id >= idMax {
		return h, fmt.Errorf("broken stream: message number %d", h.id)
	}
	limit := uint64(0)
	switch h.kind {
	case kindEager:
		limit = eagerMax
	case kindData:
		limit = dataMax
	case kindAnnounce:
		limit = math.MaxInt
	case kindCredit:
		limit = eagerCredit
	}
	if h.size > limit {
		return h, fmt.Errorf("broken stream: frame of kind %d with %d bytes", h.kind, h.size)
	}
	if h.kind == kindGrant && h.tag >= idMax {
		return h, fmt.Errorf("broken stream: slot %d", h.tag)
	}
	return h, nil
}
