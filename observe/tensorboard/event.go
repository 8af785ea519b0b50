package tensorboard

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"
)

// Keys of protocol buffer fields: number<<3 | wire type, where the type is 0
// for a varint, 1 for 8 bytes, 2 for a length and bytes, 5 for 4 bytes.
const (
	eventWallTime    = 1<<3 | 1
	eventStep        = 2<<3 | 0
	eventFileVersion = 3<<3 | 2
	eventSummary     = 5<<3 | 2
	eventSessionLog  = 7<<3 | 2

	sessionLogStatus = 1<<3 | 0
	sessionStart     = 1

	summaryValue = 1<<3 | 2
	valueTag     = 1<<3 | 2
	valueSimple  = 2<<3 | 5
)

// fileVersion is the content of the first event of a file. From version 2 on
// readers forget expired steps when they see a session start.
const fileVersion = "brain.Event:2"

// appendEvent appends what all events begin with. A step of 0 is the default,
// which protocol buffers leave out.
func appendEvent(b []byte, at time.Time, step int64) []byte {
	b = append(b, eventWallTime)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(at.UnixNano())/1e9))
	if step != 0 {
		b = append(b, eventStep)
		b = binary.AppendUvarint(b, uint64(step))
	}
	return b
}

func appendVersion(b []byte, at time.Time) []byte {
	return appendString(append(appendEvent(b, at, 0), eventFileVersion), fileVersion)
}

// appendStart appends a session start, at which readers forget what they have
// read for this step and later ones.
func appendStart(b []byte, at time.Time, step int64) []byte {
	return append(appendEvent(b, at, step), eventSessionLog, 2, sessionLogStatus, sessionStart)
}

// appendScalar appends a summary of one value. The value is written even when
// it is 0: it is a member of a oneof.
func appendScalar(b []byte, at time.Time, step int64, tag string, value float64) []byte {
	size := 1 + varintSize(len(tag)) + len(tag) + 1 + 4
	b = append(appendEvent(b, at, step), eventSummary)
	b = binary.AppendUvarint(b, uint64(1+varintSize(size)+size))
	b = append(b, summaryValue)
	b = binary.AppendUvarint(b, uint64(size))
	b = appendString(append(b, valueTag), tag)
	b = append(b, valueSimple)
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(value)))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// varintSize returns the bytes of n as a varint, 7 bits in each.
func varintSize(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }
