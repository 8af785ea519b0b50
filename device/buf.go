package device

import (
	"fmt"
	"unsafe"
)

// Type is the element type of a buffer.
type Type uint8

// The element types. Their order is part of checkpoint and wire formats.
const (
	F32 Type = iota
	F16
	BF16
	F64
	I32
	I64
	I8
	U8
)

var typeNames = [...]string{"f32", "f16", "bf16", "f64", "i32", "i64", "i8", "u8"}
var typeSizes = [...]int{4, 2, 2, 8, 4, 8, 1, 1}

// Size returns the bytes of one element.
func (t Type) Size() int { return typeSizes[t] }

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// ParseType reads a type's name, as String prints it.
func ParseType(name string) (Type, error) {
	for i, n := range typeNames {
		if n == name {
			return Type(i), nil
		}
	}
	return 0, fmt.Errorf("unknown element type %q (known: f32 f16 bf16 f64 i32 i64 i8 u8)", name)
}

// Buf is flat typed memory: Len elements of Type. It is a value like a slice;
// copies share the memory. The zero Buf holds nothing.
//
// Host-visible buffers have their bytes in mem. A device whose memory the host
// cannot read leaves mem nil and keeps its address in Handle.
type Buf struct {
	Type   Type
	Len    int
	Handle uintptr // device address, for devices that the host cannot read
	mem    []byte
}

// FromBytes wraps b, which the Buf aliases; len(b) must be a multiple of the
// element size and b must be aligned to it.
func FromBytes(t Type, b []byte) Buf {
	if len(b)%t.Size() != 0 {
		panic(fmt.Sprintf("device: %d bytes are no whole number of %s", len(b), t))
	}
	return Buf{Type: t, Len: len(b) / t.Size(), mem: b}
}

// FromF32 wraps s, which the Buf aliases.
func FromF32(s []float32) Buf { return from(F32, s) }

// FromF64 wraps s, which the Buf aliases.
func FromF64(s []float64) Buf { return from(F64, s) }

// FromI32 wraps s, which the Buf aliases.
func FromI32(s []int32) Buf { return from(I32, s) }

// FromI64 wraps s, which the Buf aliases.
func FromI64(s []int64) Buf { return from(I64, s) }

// FromU8 wraps s, which the Buf aliases.
func FromU8(s []byte) Buf { return Buf{Type: U8, Len: len(s), mem: s} }

func from[T any](t Type, s []T) Buf {
	if len(s) == 0 {
		return Buf{Type: t}
	}
	n := len(s) * t.Size()
	return Buf{Type: t, Len: len(s), mem: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), n)}
}

// Bytes returns the memory itself, not a copy; nil for the zero Buf.
func (b Buf) Bytes() []byte { return b.mem }

// address is where the buffer lies: in the host's memory, or the device's.
func (b Buf) address() uintptr {
	if b.mem == nil {
		return b.Handle
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(b.mem)))
}

// IsZero reports whether b is the zero Buf or empty.
func (b Buf) IsZero() bool { return b.Len == 0 }

// Size returns the bytes that b spans.
func (b Buf) Size() int { return b.Len * b.Type.Size() }

// Slice returns the elements [lo, hi), sharing memory.
func (b Buf) Slice(lo, hi int) Buf {
	if lo < 0 || hi < lo || hi > b.Len {
		panic(fmt.Sprintf("device: slice [%d:%d] of a buffer of %d", lo, hi, b.Len))
	}
	s := b.Type.Size()
	out := Buf{Type: b.Type, Len: hi - lo, Handle: b.Handle}
	if b.Handle != 0 {
		out.Handle += uintptr(lo * s)
	}
	if b.mem != nil {
		out.mem = b.mem[lo*s : hi*s : hi*s]
	}
	return out
}

// As reinterprets the same bytes as another type, for reuse of scratch memory.
func (b Buf) As(t Type) Buf {
	return Buf{Type: t, Len: b.Size() / t.Size(), Handle: b.Handle, mem: b.mem}
}

// F32 returns the elements as a slice that shares memory; it panics when the
// type differs.
func (b Buf) F32() []float32 { return view[float32](b, F32) }

// F64 is F32 for float64.
func (b Buf) F64() []float64 { return view[float64](b, F64) }

// I32 is F32 for int32.
func (b Buf) I32() []int32 { return view[int32](b, I32) }

// I64 is F32 for int64.
func (b Buf) I64() []int64 { return view[int64](b, I64) }

// I8 is F32 for int8.
func (b Buf) I8() []int8 { return view[int8](b, I8) }

// U16 returns the raw halves of an F16 or BF16 buffer.
func (b Buf) U16() []uint16 {
	if b.Type != F16 && b.Type != BF16 {
		panic(fmt.Sprintf("device: U16 of a buffer of %s", b.Type))
	}
	return view[uint16](b, b.Type)
}

func view[T any](b Buf, t Type) []T {
	if b.Len == 0 {
		return nil
	}
	if b.Type != t {
		panic(fmt.Sprintf("device: a buffer of %s read as %s", b.Type, t))
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b.mem))), b.Len)
}
