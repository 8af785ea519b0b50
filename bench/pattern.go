package bench

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// pattern gives every element of every rank a small integer such that the sum
// over the ranks is below 128, hence exact in every type and in any order. Of
// many ranks only mostRanks add to one element; which, changes from element to
// element.
type pattern struct{ ranks int }

const (
	mostRanks  = 8
	mostValue  = 15
	mostResult = mostRanks * mostValue
)

// value is what a rank holds at index i, at most mostValue.
func (p pattern) value(rank, i int) int {
	if p.ranks > mostRanks && (rank+i)%p.ranks >= mostRanks {
		return 0
	}
	return mix(rank, i)
}

// mix spreads its arguments, so that neither a shift nor an exchange of parts
// goes unnoticed.
func mix(rank, i int) int {
	x := uint32(i)*2654435761 + uint32(rank)*2246822519
	x ^= x >> 15
	return 1 + int(x*2654435761>>16)%mostValue
}

// sum is the reduction of all ranks' values at index i.
func (p pattern) sum(i int) int {
	total := 0
	for k := range min(p.ranks, mostRanks) {
		total += mix((k+p.ranks-i%p.ranks)%p.ranks, i)
	}
	return total
}

// codes are the bits of the integers from 0 to mostResult in a type.
func codes(t device.Type) *[mostResult + 1]uint64 {
	var c [mostResult + 1]uint64
	for i := range c {
		x := float32(i)
		switch t {
		case device.F32:
			c[i] = uint64(math.Float32bits(x))
		case device.F64:
			c[i] = math.Float64bits(float64(i))
		case device.F16:
			c[i] = uint64(device.F32ToF16(x))
		case device.BF16:
			c[i] = uint64(device.F32ToBF16(x))
		default:
			c[i] = uint64(i)
		}
	}
	return &c
}

// fill sets every element of b to value(index).
func fill(b device.Buf, value func(i int) int) {
	c := codes(b.Type)
	switch b.Type.Size() {
	case 1:
		fillAll(b.Bytes(), c, value)
	case 2:
		fillAll(b.U16(), c, value)
	case 4:
		fillAll(b.As(device.I32).I32(), c, value)
	case 8:
		fillAll(b.As(device.I64).I64(), c, value)
	}
}

// holds reports whether every element of b is value(index).
func holds(b device.Buf, value func(i int) int) bool {
	c := codes(b.Type)
	switch b.Type.Size() {
	case 1:
		return holdsAll(b.Bytes(), c, value)
	case 2:
		return holdsAll(b.U16(), c, value)
	case 4:
		return holdsAll(b.As(device.I32).I32(), c, value)
	default:
		return holdsAll(b.As(device.I64).I64(), c, value)
	}
}

type bits interface{ uint8 | uint16 | int32 | int64 }

func fillAll[T bits](s []T, c *[mostResult + 1]uint64, value func(int) int) {
	for i := range s {
		s[i] = T(c[value(i)])
	}
}

func holdsAll[T bits](s []T, c *[mostResult + 1]uint64, value func(int) int) bool {
	for i, x := range s {
		if x != T(c[value(i)]) {
			return false
		}
	}
	return true
}

// zero reports whether all of b is zero.
func zero(b device.Buf) bool {
	for _, x := range b.Bytes() {
		if x != 0 {
			return false
		}
	}
	return true
}
