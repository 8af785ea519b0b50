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
	trailerLen = 8
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
// handled on this socket, check the CRC32C of the header where the world uses
// checksums. A payload has a trailer: that of Data always, others with checksums.
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

// stamp sets ack and the check of a header that is complete otherwise.
func stamp(head []byte, ack uint32, table *crc32.Table) {
	binary.LittleEndian.PutUint32(head[24:], ack)
	if table != nil {
		binary.LittleEndian.PutUint32(head[28:], crc32.Checksum(head[:28], table))
	}
}

// seal makes the trailer of a payload: status u32, 0 or 1 when the payload is
// not the sender's, and the CRC32C of payload and status, or of such a status
// alone; 0 without checksums.
func seal(trailer []byte, payload []byte, table *crc32.Table) {
	clear(trailer[:trailerLen])
	if table != nil {
		sum := crc32.Update(crc32.Checksum(payload, table), table, trailer[:4])
		binary.LittleEndian.PutUint32(trailer[4:], sum)
	}
}

// spoil makes the trailer of a payload that is not the sender's.
func spoil(trailer []byte, table *crc32.Table) {
	clear(trailer[:trailerLen])
	trailer[0] = 1
	if table != nil {
		binary.LittleEndian.PutUint32(trailer[4:], crc32.Checksum(trailer[:4], table))
	}
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

// trailer is how many bytes follow the payload.
func (h header) trailer(table *crc32.Table) int {
	if h.kind == kindData || table != nil && h.payload() > 0 {
		return trailerLen
	}
	return 0
}
