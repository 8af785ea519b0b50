package pack

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Encode packs values, len(src) bytes of them, into dst, which has Bound's length or
// more, and returns how many bytes that takes: it may be more than len(src), and what
// lies behind in dst is undefined. dst and src do not overlap.
func Encode(dst, src []byte, k Kind) int {
	size := k.Size()
	if len(src)%size != 0 || len(dst) < Bound(k, len(src)/size) {
		panic(fmt.Sprintf("pack: %d bytes of values of %d bytes into %d bytes", len(src), size, len(dst)))
	}
	var space scratch
	vectors := chosenKernels()
	at := 0
	for len(src) > 0 {
		n := min(blockLen*size, len(src))
		at += encodeBlock(vectors, dst[at:], src[:n], k, &space)
		src = src[n:]
	}
	return at
}

// scratch is memory for a block's exponents and escapes, and what is written behind.
// Kernels know where in it these are.
type scratch struct {
	exponents [blockLen]byte
	escapes   [blockLen + groupLen]byte
	bits      [3][blockLen/groupLen + 2]uint64 // of the escapes
}

func encodeBlock(vectors kernels, dst, src []byte, k Kind, space *scratch) int {
	n := vectors.encode(dst, src, k, space)
	if n == 0 {
		n = encodeCoded(dst, src, k, space)
	}
	switch {
	case dst[1] == 0 && allZero(src): // with the largest exponent 0
		dst[0] = zeroBlock
		return 1
	case n > 1+len(src):
		dst[0] = rawBlock
		return 1 + copy(dst[1:], src)
	}
	return n
}

// encodeCoded is the twin of the kernels, and for short blocks.
func encodeCoded(dst, src []byte, k Kind, space *scratch) int {
	n := len(src) / k.Size()
	exponents := space.exponents[:n]
	at := headLen + split(dst[headLen:], exponents, src, k)
	most := byte(0)
	for _, e := range exponents {
		most = max(most, e>>k.extra())
	}
	w := firstCode(exponents, most, k.extra())
	dst[0], dst[1] = codedBlock+w, most

	escapes := space.escapes[:0]
	for lo := 0; lo < n; lo += groupLen {
		group := exponents[lo:min(lo+groupLen, n)]
		length := planeLen(len(group))
		for bit := range k.extra() {
			plane := uint64(0)
			for i, e := range group {
				plane |= uint64(e>>bit&1) << i
			}
			putPlane(dst[at:], plane, length)
			at += length
		}
		var planes [2]uint64
		for i, e := range group {
			c := most - e>>k.extra()
			code := min(c-w, codes) // of bytes: what lies above w is far beyond
			planes[0] |= uint64(code&1) << i
			planes[1] |= uint64(code>>1) << i
			if code < codes {
				continue
			}
			if c >= w {
				c -= codes
			}
			escapes = append(escapes, c)
		}
		for _, plane := range planes {
			putPlane(dst[at:], plane, length)
			at += length
		}
	}
	return at + putEscapes(dst[at:], escapes)
}

// split stores the lower bytes of values in dst and the highest, with the exponent,
// apart. It returns how many bytes are in dst.
func split(dst, exponents, src []byte, k Kind) int {
	if k == F32 {
		for i := range exponents {
			v := bits.RotateLeft32(binary.LittleEndian.Uint32(src[4*i:]), 1)
			dst[3*i], dst[3*i+1], dst[3*i+2] = byte(v), byte(v>>8), byte(v>>16)
			exponents[i] = byte(v >> 24)
		}
		return 3 * len(exponents)
	}
	for i := range exponents {
		v := bits.RotateLeft16(binary.LittleEndian.Uint16(src[2*i:]), 1)
		dst[i], exponents[i] = byte(v), byte(v>>8)
	}
	return len(exponents)
}

// firstCode is the distance from the largest exponent that leaves the fewest escapes.
func firstCode(exponents []byte, most byte, shift int) byte {
	var counts [starts + codes - 1]int
	for _, e := range exponents {
		if c := int(most - e>>shift); c < len(counts) {
			counts[c]++
		}
	}
	first, best := 0, -1
	for w := range starts {
		if sum := counts[w] + counts[w+1] + counts[w+2]; sum > best {
			first, best = w, sum
		}
	}
	return byte(first)
}

func putEscapes(dst, escapes []byte) int {
	at := 0
	for lo := 0; lo < len(escapes); lo += groupLen {
		group := escapes[lo:min(lo+groupLen, len(escapes))]
		var planes [3]uint64
		for i, d := range group {
			short := uint64(min(d, escapeMost))
			planes[0] |= short & 1 << i
			planes[1] |= short >> 1 & 1 << i
			planes[2] |= short >> 2 << i
		}
		for _, plane := range planes {
			putPlane(dst[at:], plane, planeLen(len(group)))
			at += planeLen(len(group))
		}
		for _, d := range group {
			if d >= escapeMost {
				dst[at] = d
				at++
			}
		}
	}
	return at
}

func allZero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}
