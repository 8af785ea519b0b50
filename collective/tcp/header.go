package tcp

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/gradfusion/gradfusion/collective"
)

const (
	headerLen  = 32
	trailerLen = 4
	eagerMax   = collective.EagerSize // largest message sent without a grant
	dataMax    = 64 << 20             // largest piece of a message in one frame
	idMax      = 1 << 16              // messages in flight per direction of a pair
)

// kind is what a frame is.
type kind uint8

const (
	kindEager    kind = iota + 1 // tag, size; the message follows
	kindAnnounce                 // id, tag, size: a message waits; its head follows
	kindGrant                    // id of the announcement, tag holds the receiver's slot
	kindDiscard                  // id: the announced message is consumed, its bytes are not wanted
	kindWithdraw                 // id: the announcement is taken back; Discard answers
	kindData                     // id is the receiver's slot, tag the offset, size; bytes and trailer follow
	kindVoid                     // like Data, but these bytes will never come
	kindAbort                    // id is the receiver's slot, tag the announcement's id: only size bytes come as Data or Void
	kindDone                     // id of the announcement: all its bytes have arrived
	kindCredit                   // size: bytes of eager messages that have left the buffers
	kindGoodbye                  // the sender has closed; tag is 1 + the rank it had lost, or 0
	kindFarewell                 // answer to Goodbye
	kindAck                      // only ack counts; is not counted itself
	kindEnd
)

// header precedes every frame: kind u8, three zero bytes, id u32, tag u64, size
// u64, ack u32, check u32, little-endian. ack is how many frames the sender has
// handled on this socket, check the CRC32C of header and payload where the
// world uses checksums.
type header struct {
	kind kind
	id   uint32
	tag  collective.Tag
	size uint64
	ack  uint32
}

func (h header) put(b []byte) {
	binary.LittleEndian.PutUint32(b, uint32(h.kind))
	binary.LittleEndian.PutUint32(b[4:], h.id)
	binary.LittleEndian.PutUint64(b[8:], uint64(h.tag))
	binary.LittleEndian.PutUint64(b[16:], h.size)
	binary.LittleEndian.PutUint32(b[24:], h.ack)
	binary.LittleEndian.PutUint32(b[28:], 0)
}

// stamp sets ack and, of a header that is complete otherwise, the checksum over
// it and its payload.
func stamp(head []byte, ack uint32, table *crc32.Table, payload ...[]byte) {
	binary.LittleEndian.PutUint32(head[24:], ack)
	if table == nil {
		return
	}
	sum := crc32.Update(0, table, head[:28])
	for _, p := range payload {
		sum = crc32.Update(sum, table, p)
	}
	binary.LittleEndian.PutUint32(head[28:], sum)
}

// parseHeader reads and checks a header; b has headerLen bytes.
func parseHeader(b []byte) (header, error) {
	first := binary.LittleEndian.Uint32(b)
	h := header{
		kind: kind(first),
		id:   binary.LittleEndian.Uint32(b[4:]),
		tag:  collective.Tag(binary.LittleEndian.Uint64(b[8:])),
		size: binary.LittleEndian.Uint64(b[16:]),
		ack:  binary.LittleEndian.Uint32(b[24:]),
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
	case kindData, kindVoid:
		limit = dataMax
	case kindAnnounce, kindAbort:
		limit = math.MaxInt
	case kindCredit:
		limit = eagerCredit
	}
	if h.size > limit {
		return h, fmt.Errorf("broken stream: frame of kind %d with %d bytes", h.kind, h.size)
	}
	if (h.kind == kindGrant || h.kind == kindAbort) && h.tag >= idMax {
		return h, fmt.Errorf("broken stream: slot %d", h.tag)
	}
	return h, nil
}

// payload is how many bytes follow the header, without a trailer.
func (h header) payload() int {
	switch h.kind {
	case kindEager, kindData:
		return int(h.size)
	case kindAnnounce:
		return int(min(h.size, collective.HeadSize))
	}
	return 0
}
