package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

var errShort = errors.New("packed values end too soon")

// Decode fills dst with the values that src holds, which must be all that src has.
// dst and src do not overlap. dst is undefined after an error, which is one of the
// bytes: any bytes may be given.
func Decode(dst, src []byte, k Kind) error {
	size := k.Size()
	if len(dst)%size != 0 {
		panic(fmt.Sprintf("pack: %d bytes for values of %d bytes", len(dst), size))
	}
	d := decoding{kind: k, vectors: chosenKernels()}
	return d.all(dst, src)
}

func (d *decoding) all(dst, src []byte) error {
	for len(dst) > 0 {
		n := min(blockLen*d.kind.Size(), len(dst))
		used, err := d.block(dst[:n], src)
		if err != nil {
			return err
		}
		dst, src = dst[n:], src[used:]
	}
	if len(src) > 0 {
		return fmt.Errorf("%d bytes follow the last packed value", len(src))
	}
	return nil
}

// decoding has what blocks share.
type decoding struct {
	kind    Kind
	vectors kernels
	space   scratch
	last    [blockSpace]byte // the end of the bytes, where kernels may read on
}

// block decodes a block and returns how many bytes it has.
func (d *decoding) block(dst, src []byte) (int, error) {
	if len(src) == 0 {
		return 0, errShort
	}
	switch kind := src[0]; {
	case kind == rawBlock:
		if len(src) < 1+len(dst) {
			return 0, errShort
		}
		return 1 + copy(dst, src[1:]), nil
	case kind == zeroBlock:
		clear(dst)
		return 1, nil
	case kind >= codedBlock+starts:
		return 0, fmt.Errorf("a packed block of unknown kind %d", kind)
	}
	if len(src) < headLen {
		return 0, errShort
	}
	bytes := src
	if len(src) < blockSpace && len(dst) == blockLen*d.kind.Size() {
		copy(d.last[:], src)
		bytes = d.last[:]
	}
	n := d.vectors.decode(dst, bytes, d.kind, &d.space)
	if n > len(src) {
		return 0, errShort
	}
	if n > 0 {
		return n, nil
	}
	return d.coded(dst, src)
}

// reading takes bytes off the front.
type reading struct {
	b  []byte
	at int
}

func (r *reading) take(n int) []byte {
	b := r.b[r.at : r.at+n]
	r.at += n
	return b
}

func (r *reading) has(n int) bool { return len(r.b)-r.at >= n }

// coded is the twin of the kernels, and for short blocks.
func (d *decoding) coded(dst, src []byte) (int, error) {
	k, w, most := d.kind, src[0]-codedBlock, src[1]
	n := len(dst) / k.Size()
	r := reading{src, headLen}
	if !r.has(n * k.low()) {
		return 0, errShort
	}
	low := r.take(n * k.low())
	// First the distances, where the codes have them, and how many escapes there are.
	distances, escaped := d.space.exponents[:n], [blockLen / groupLen]uint64{}
	var extra [blockLen]byte
	escapes := 0
	for lo := 0; lo < n; lo += groupLen {
		group := distances[lo:min(lo+groupLen, n)]
		length := planeLen(len(group))
		if !r.has((k.extra() + 2) * length) {
			return 0, errShort
		}
		for bit := range k.extra() {
			plane := takePlane(r.take(length), length)
			for i := range group {
				extra[lo+i] |= byte(plane>>i&1) << bit
			}
		}
		plane0, plane1 := takePlane(r.take(length), length), takePlane(r.take(length), length)
		for i := range group {
			group[i] = w + byte(plane0>>i&1) + byte(plane1>>i&1)<<1
		}
		which := plane0 & plane1 & (1<<len(group) - 1)
		escaped[lo/groupLen] = which
		escapes += bits.OnesCount64(which)
	}
	values := d.space.escapes[:escapes]
	if !takeEscapes(&r, values) {
		return 0, errShort
	}
	for g, which := range escaped {
		for ; which != 0; which &= which - 1 {
			c := values[0]
			values = values[1:]
			if c >= w {
				c += codes
			}
			distances[g*groupLen+bits.TrailingZeros64(which)] = c
		}
	}
	for i, c := range distances {
		distances[i] = (most-c)<<k.extra() | extra[i]
	}
	join(dst, low, distances, k)
	return r.at, nil
}

// takeEscapes fills escapes; false where the bytes end before.
func takeEscapes(r *reading, escapes []byte) bool {
	for len(escapes) > 0 {
		group := escapes[:min(groupLen, len(escapes))]
		escapes = escapes[len(group):]
		length := planeLen(len(group))
		if !r.has(3 * length) {
			return false
		}
		clear(group)
		for bit := range 3 {
			plane := takePlane(r.take(length), length)
			for i := range group {
				group[i] |= byte(plane>>i&1) << bit
			}
		}
		for i, short := range group {
			if short < escapeMost {
				continue
			}
			if !r.has(1) {
				return false
			}
			group[i] = r.take(1)[0]
		}
	}
	return true
}

// join is the reverse of split.
func join(dst, low, exponents []byte, k Kind) {
	for i, e := range exponents {
		if k == F32 {
			v := uint32(low[3*i]) | uint32(low[3*i+1])<<8 | uint32(low[3*i+2])<<16 | uint32(e)<<24
			binary.LittleEndian.PutUint32(dst[4*i:], bits.RotateLeft32(v, -1))
			continue
		}
		binary.LittleEndian.PutUint16(dst[2*i:], bits.RotateLeft16(uint16(low[i])|uint16(e)<<8, -1))
	}
}
