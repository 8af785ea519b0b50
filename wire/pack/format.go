package pack

// Kind is a type of floats, little-endian.
type Kind uint8

// The kinds.
const (
	F32 Kind = iota
	F16
	BF16
)

const (
	blockLen = 256 // values of a block
	groupLen = 64  // values whose bits stand together
	headLen  = 2   // of a coded block

	rawBlock   = 0
	zeroBlock  = 1
	codedBlock = 2 // and more: the first exponent that has a code
	starts     = 6 // how many there are

	codes      = 3 // exponents with a code of their own, and the code of all others
	escapeMost = 7 // the escape that is followed by a byte
)

// The most bytes that kernels read or write in a block and behind it.
const (
	planeMost  = 3 * groupLen / 8
	codedMost  = headLen + 3*blockLen + blockLen/groupLen*(2*groupLen/8+planeMost) + blockLen/groupLen*planeMost + blockLen
	beyond     = groupLen
	blockSpace = codedMost + beyond
)

// Size is the bytes of a value.
func (k Kind) Size() int {
	if k == F32 {
		return 4
	}
	return 2
}

// low is how many bytes of a value are stored as they are.
func (k Kind) low() int { return k.Size() - 1 }

// extra is how many bits are, above those.
func (k Kind) extra() int {
	if k == F16 {
		return 3
	}
	return 0
}

// Bound is the length of the memory that Encode needs for n values.
func Bound(k Kind, n int) int {
	return n*k.Size() + (n+blockLen-1)/blockLen + blockSpace
}

// Fast reports whether this processor packs in vectors, some gigabytes a second.
func Fast() bool { return chosenKernels().fast() }

// planeLen is the bytes of a bit of each of n values of a group.
func planeLen(n int) int { return (n + 7) / 8 }

// putPlane stores bits in the first n bytes.
func putPlane(dst []byte, plane uint64, n int) {
	for i := range n {
		dst[i] = byte(plane >> (8 * i))
	}
}

// takePlane reads n bytes.
func takePlane(src []byte, n int) uint64 {
	plane := uint64(0)
	for i := range n {
		plane |= uint64(src[i]) << (8 * i)
	}
	return plane
}
