package tensorboard

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// A decoder that shares nothing with the writer: it walks any protocol buffer
// by its keys and computes checksums bit by bit.

// event is one record; of what follows its step only one kind is set.
type event struct {
	wall    float64
	step    int64
	version string
	start   bool
	tag     string
	value   float32
}

var errDamaged = errors.New("damaged")

// castagnoli is CRC-32C as it is defined: reflected, polynomial 0x1edc6f41.
func castagnoli(b []byte) uint32 {
	sum := ^uint32(0)
	for _, c := range b {
		sum ^= uint32(c)
		for range 8 {
			sum = sum>>1 ^ sum&1*bits.Reverse32(0x1edc6f41)
		}
	}
	return ^sum
}

// unmasked undoes the mask: subtract the constant, rotate left by 15.
func unmasked(b []byte) uint32 {
	return bits.RotateLeft32(binary.LittleEndian.Uint32(b)-0xa282ead8, 15)
}

// records cuts a file into the contents of its records.
func records(b []byte) (all [][]byte, err error) {
	for len(b) > 0 {
		if len(b) < 16 || unmasked(b[8:]) != castagnoli(b[:8]) {
			return nil, errDamaged
		}
		n := binary.LittleEndian.Uint64(b)
		if n > uint64(len(b)-16) || unmasked(b[12+n:]) != castagnoli(b[12:12+n]) {
			return nil, errDamaged
		}
		all, b = append(all, b[12:12+n]), b[16+n:]
	}
	return all, nil
}

// walk calls f for each field of a message; a field holds a number or bytes.
func walk(b []byte, f func(field int, number uint64, content []byte) error) error {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 {
			return errDamaged
		}
		b = b[n:]
		var number uint64
		size := 0 // of the number or the content
		switch key & 7 {
		case 0, 2:
			if number, n = binary.Uvarint(b); n <= 0 {
				return errDamaged
			}
			b = b[n:]
			if key&7 == 2 {
				size = int(min(number, math.MaxInt32))
			}
		case 1:
			size = 8
		case 5:
			size = 4
		default:
			return errDamaged
		}
		if size > len(b) {
			return errDamaged
		}
		switch key & 7 {
		case 1:
			number = binary.LittleEndian.Uint64(b)
		case 5:
			number = uint64(binary.LittleEndian.Uint32(b))
		}
		if err := f(int(key>>3), number, b[:size]); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

func decode(b []byte) (e event, err error) {
	value := func(field int, number uint64, content []byte) error {
		switch field {
		case 1:
			e.tag = string(content)
		case 2:
			e.value = math.Float32frombits(uint32(number))
		}
		return nil
	}
	err = walk(b, func(field int, number uint64, content []byte) error {
		switch field {
		case 1:
			e.wall = math.Float64frombits(number)
		case 2:
			e.step = int64(number)
		case 3:
			e.version = string(content)
		case 5:
			return walk(content, func(field int, _ uint64, content []byte) error { return walk(content, value) })
		case 7:
			return walk(content, func(field int, number uint64, _ []byte) error {
				e.start = field == 1 && number == 1
				return nil
			})
		}
		return nil
	})
	return e, err
}

func events(b []byte) (all []event, err error) {
	cut, err := records(b)
	if err != nil {
		return nil, err
	}
	for _, content := range cut {
		e, err := decode(content)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}
