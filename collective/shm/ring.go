//go:build linux && (amd64 || arm64)

package shm

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/gradfusion/gradfusion/collective"
)

// ringHead is what precedes a ring's data: tail, head, consumed and waiting,
// each with a line to itself.
const ringHead = 4 * line

const (
	frameHead  = 32
	frameAlign = 64
	dataMax    = 128<<10 - frameHead // bytes of a message's part
)

// frameKind says what a frame is.
type frameKind byte

const (
	frameSkip     frameKind = iota + 1 // the rest of the ring is unused
	frameEager                         // a small message
	frameAnnounce                      // size of a large message, and its head
	frameGrant                         // send message id
	frameDiscard                       // message id is not wanted, or withdrawn
	frameData                          // the next bytes of message id
	frameWithdraw                      // take the announcement of id back
	frameAbort                         // message id ends here
	frameGoodbye                       // nothing follows; tag - 1 is the rank that was lost before
	frameKinds
)

// frame is what precedes a frame's bytes.
type frame struct {
	kind   frameKind
	id     uint32
	length int // of the bytes that follow
	size   int // of the whole message
	tag    collective.Tag
}

func (f frame) put(b []byte) {
	b[0] = byte(f.kind)
	binary.LittleEndian.PutUint32(b[4:], f.id)
	binary.LittleEndian.PutUint64(b[8:], uint64(f.length))
	binary.LittleEndian.PutUint64(b[16:], uint64(f.size))
	binary.LittleEndian.PutUint64(b[24:], uint64(f.tag))
}

func getFrame(b []byte) frame {
	return frame{
		kind: frameKind(b[0]), id: binary.LittleEndian.Uint32(b[4:]),
		length: int(binary.LittleEndian.Uint64(b[8:])), size: int(binary.LittleEndian.Uint64(b[16:])),
		tag: collective.Tag(binary.LittleEndian.Uint64(b[24:])),
	}
}

// ring is one process's view of a ring of frames: one process writes, one reads.
// A frame lies in one piece; positions only grow. A side is used under its
// user's lock.
type ring struct {
	tail, head *atomic.Uint64 // written by the writer, by the reader
	consumed   *atomic.Uint64 // bytes of eager messages that were received
	waiting    *atomic.Uint32 // the writer waits for space
	data       []byte
	at         uint64 // own position
	limit      uint64 // the other's, as last seen
}

func newRing(b []byte) ring {
	return ring{
		tail: atomic64At(b, 0), head: atomic64At(b, line), consumed: atomic64At(b, 2*line), waiting: atomicAt(b, 3*line),
		data: b[ringHead:],
	}
}

// reserve returns the place of a frame with that many bytes, or nil when there
// is no space.
func (r *ring) reserve(length int) []byte {
	need, size := uint64(roundUp(frameHead+length, frameAlign)), uint64(len(r.data))
	at := r.at % size
	skip := uint64(0)
	if size-at < need {
		skip = size - at
	}
	if r.at+skip+need > r.limit+size {
		r.limit = r.head.Load()
		if r.at+skip+need > r.limit+size {
			return nil
		}
	}
	if skip > 0 {
		frame{kind: frameSkip, length: int(skip) - frameHead}.put(r.data[at:])
		r.at += skip
		at = 0
	}
	r.at += need
	return r.data[at : int(at)+frameHead+length]
}

// write appends a frame; false when there is no space.
func (r *ring) write(f frame, b []byte) bool {
	f.length = len(b)
	place := r.reserve(len(b))
	if place == nil {
		return false
	}
	f.put(place)
	copy(place[frameHead:], b)
	r.tail.Store(r.at)
	return true
}

// filled reports whether there is something to read. Anybody may ask.
func (r *ring) filled() bool { return r.tail.Load() != r.head.Load() }

// read returns the oldest frame; ok is false when there is none. The bytes are
// valid until done.
func (r *ring) read() (f frame, b []byte, ok bool, err error) {
	for {
		if r.at == r.limit {
			if r.limit = r.tail.Load(); r.at == r.limit {
				return frame{}, nil, false, nil
			}
		}
		at := int(r.at % uint64(len(r.data)))
		f = getFrame(r.data[at:])
		if f.kind == 0 || f.kind >= frameKinds || f.size < 0 || f.length < 0 || f.length > len(r.data)-at-frameHead || r.limit-r.at > uint64(len(r.data)) {
			return frame{}, nil, false, fmt.Errorf("broken ring: frame %d of %d bytes", f.kind, f.length)
		}
		if f.kind != frameSkip {
			return f, r.data[at+frameHead : at+frameHead+f.length], true, nil
		}
		r.done(f)
	}
}

// done gives a frame's place back.
func (r *ring) done(f frame) {
	r.at += uint64(roundUp(frameHead+f.length, frameAlign))
	r.head.Store(r.at)
}
