package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Blocks is the format of small signed integers that share a scale per block: 256
// values of 8 bits, or 128 of 4. A block is the scale as a float32, which is the
// largest magnitude / 127 (or / 7), then the integers q, value = scale * q.
// Integers are rounded to one of the two neighbours, with the probabilities that
// make the mean right (stochastic rounding), so sums over ranks and steps are not
// biased (QSGD, Alistarh et al. 2017, with one scale per block). Four bits lie two
// in a byte, value j of a block in the lower and value j + half of it in the
// upper. A block with a value that is not finite decodes to NaN.
type Blocks struct {
	bits    int
	size    int     // values of a block
	levels  float32 // the largest q
	kernels kernels
}

// NewBlocks returns the format of integers of 8 or of 4 bits.
func NewBlocks(bits int) *Blocks {
	switch bits {
	case 8:
		return &Blocks{8, 256, 127, chosenKernels()}
	case 4:
		return &Blocks{4, 128, 7, chosenKernels()}
	}
	panic(fmt.Sprintf("wire: integers of %d bits", bits))
}

const scaleSize = 4

// smallest is the largest magnitude of a block that is sent as zero: an inverse
// scale would overflow. Its values are kept.
const smallest = 1e-35

// Name implements Format.
func (f *Blocks) Name() string {
	if f.bits == 8 {
		return "int8"
	}
	return "int4"
}

// EncodedLen implements Format: 1.016 bytes a value, or 0.531.
func (f *Blocks) EncodedLen(n int) int {
	whole, rest := n/f.size, n%f.size
	bytes := whole * f.encodedBlock(f.size)
	if rest > 0 {
		bytes += f.encodedBlock(rest)
	}
	return bytes
}

func (f *Blocks) encodedBlock(n int) int { return scaleSize + (n*f.bits+7)/8 }

// Encode implements Format.
func (f *Blocks) Encode(dst []byte, src []float32, seed uint64) { f.encode(dst, src, nil, seed) }

// EncodeKeeping implements Format.
func (f *Blocks) EncodeKeeping(dst []byte, x []float32, seed uint64) { f.encode(dst, x, x, seed) }

// encode leaves what was lost in kept, where that is not nil; it may be src.
func (f *Blocks) encode(dst []byte, src, kept []float32, seed uint64) {
	r := newRandom(seed)
	done := f.kernels.quantise(f, dst, src, kept, r)
	dst = dst[f.EncodedLen(done):]
	for lo := done; lo < len(src); lo += f.size {
		hi := min(lo+f.size, len(src))
		var k []float32
		if kept != nil {
			k = kept[lo:hi]
		}
		f.encodeBlock(dst, src[lo:hi], k, r, uint32(lo/2))
		dst = dst[f.encodedBlock(hi-lo):]
	}
}

// encodeBlock encodes a block whose first counter is given.
func (f *Blocks) encodeBlock(dst []byte, src, kept []float32, r random, counter uint32) {
	scale, inverse, state := f.scale(largest(src))
	putScale(dst, scale)
	dst = dst[scaleSize:]
	if state != ordinary {
		clear(dst[:(len(src)*f.bits+7)/8])
		if kept != nil && state == tiny {
			copy(kept, src)
		} else if kept != nil {
			clear(kept)
		}
		return
	}
	half := (len(src) + 1) / 2
	for base := 0; base < len(src); base += 32 {
		for l := range 16 {
			h := r.at(counter + uint32(base/2+l))
			for i, bits := base+l, h&0xffff; i < min(base+32, len(src)); i, bits = i+16, h>>16 {
				q := f.round(src[i], inverse, bits)
				if kept != nil {
					kept[i] = src[i] - float32(float32(q)*scale)
				}
				switch {
				case f.bits == 8:
					dst[i] = byte(q)
				case i < half:
					dst[i] = byte(q) & 0xf
				default:
					dst[i-half] |= byte(q) << 4
				}
			}
		}
	}
}

func putScale(dst []byte, scale float32) {
	binary.LittleEndian.PutUint32(dst, math.Float32bits(scale))
}

func getScale(src []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(src)) }

// blockState is what kind of block it is.
type blockState uint8

const (
	ordinary  blockState = iota
	tiny                 // zero, or nearly: sent as zero
	notFinite            // sent as NaN
)

// scale and its inverse for a block's largest magnitude, given by its bits.
func (f *Blocks) scale(bits uint32) (scale, inverse float32, state blockState) {
	largest := math.Float32frombits(bits)
	switch {
	case bits >= 0x7f800000:
		return float32(math.NaN()), 0, notFinite
	case largest < smallest:
		return 0, 0, tiny
	}
	return largest / f.levels, f.levels / largest, ordinary
}

// round rounds x * inverse down or up, by 16 random bits. An integer stays what
// it is. The sum with levels + 1 is positive, so that cutting off its fraction
// rounds down.
func (f *Blocks) round(x, inverse float32, bits uint32) int32 {
	offset := f.levels + 1
	t := float32(x*inverse) + (offset + float32(float32(bits)*(1.0/65536)))
	q := int32(t) - int32(offset)
	return min(max(q, -int32(f.levels)), int32(f.levels))
}

// Decode implements Format.
func (f *Blocks) Decode(dst []float32, src []byte) { f.decode(dst, src, false) }

// DecodeAdd implements Format.
func (f *Blocks) DecodeAdd(dst []float32, src []byte) { f.decode(dst, src, true) }

func (f *Blocks) decode(dst []float32, src []byte, add bool) {
	done := f.kernels.expand(f, dst, src, add)
	dst, src = dst[done:], src[f.EncodedLen(done):]
	for len(dst) > 0 {
		n := min(f.size, len(dst))
		f.decodeBlock(dst[:n], src, add)
		dst, src = dst[n:], src[f.encodedBlock(n):]
	}
}

func (f *Blocks) decodeBlock(dst []float32, src []byte, add bool) {
	scale := getScale(src)
	q := src[scaleSize : scaleSize+(len(dst)*f.bits+7)/8]
	half := (len(dst) + 1) / 2
	for i := range dst {
		v := float32(0)
		switch {
		case f.bits == 8:
			v = float32(int8(q[i])) * scale
		case i < half:
			v = float32(int8(q[i]<<4)>>4) * scale
		default:
			v = float32(int8(q[i-half])>>4) * scale
		}
		if add {
			v = dst[i] + v
		}
		dst[i] = v
	}
}
