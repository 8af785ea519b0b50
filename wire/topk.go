package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// TopK is the format that sends the values of the largest magnitudes only: of
// each run of up to 65536 values the given share, rounded up. A run is its k
// places as ascending 16-bit numbers, then the k values as float32, so 6 bytes
// each. The selection is exact; of equal magnitudes the first are taken. What is
// left out decodes to 0, which is why it must be kept and sent later (Aji and
// Heafield 2017).
type TopK struct {
	name     string
	fraction float64
	kernels  kernels
	keys     []uint64 // candidates: magnitude, then the place, from the end
	ordered  []uint64 // the same in the order of places, while keys are selected from
	bad      bool     // the last encoding holds a value that is not finite
	guess    uint32   // a magnitude that about the wanted share reaches
}

// topRun is the most values that 16 bits can number.
const topRun = 1 << 16

// entrySize is the bytes of a place and its value.
const entrySize = 6

// NewTopK returns the format for a share of the values; 0 means 0.01. A share
// above 1 means all.
func NewTopK(fraction float64) *TopK {
	if fraction <= 0 {
		fraction = 0.01
	}
	fraction = min(fraction, 1)
	return &TopK{name: fmt.Sprintf("topk %.4g", fraction), fraction: fraction, kernels: chosenKernels()}
}

// Name implements Format.
func (f *TopK) Name() string { return f.name }

// count is how many of n values of a run are sent.
func (f *TopK) count(n int) int { return min(n, int(math.Ceil(f.fraction*float64(n)))) }

// EncodedLen implements Format.
func (f *TopK) EncodedLen(n int) int {
	return entrySize * (n/topRun*f.count(topRun) + f.count(n%topRun))
}

// Encode implements Format.
func (f *TopK) Encode(dst []byte, src []float32, _ uint64) {
	f.bad = false
	f.Runs(dst, len(src), func(dst []byte, lo, hi int) { f.encodeRun(dst, src[lo:hi]) })
}

// EncodeKeeping implements Format: what was sent becomes 0.
func (f *TopK) EncodeKeeping(dst []byte, x []float32, seed uint64) {
	f.Encode(dst, x, seed)
	f.ClearSent(dst, x)
	if !f.bad {
		return
	}
	for i, v := range x { // there may be more of them
		x[i] = lost(v, 0)
	}
}

// ClearSent sets x to 0 where an encoding of as many values holds one.
func (f *TopK) ClearSent(src []byte, x []float32) {
	f.Runs(src, len(x), func(src []byte, lo, hi int) {
		for i := range f.count(hi - lo) {
			x[lo+int(binary.LittleEndian.Uint16(src[2*i:]))] = 0
		}
	})
}

// Runs calls visit for each run of n values, which are encoded apart from others,
// and its bytes.
func (f *TopK) Runs(b []byte, n int, visit func(b []byte, lo, hi int)) {
	for lo := 0; lo < n; lo += topRun {
		hi := min(lo+topRun, n)
		size := entrySize * f.count(hi-lo)
		visit(b[:size:size], lo, hi)
		b = b[size:]
	}
}

func (f *TopK) encodeRun(dst []byte, src []float32) {
	k := f.count(len(src))
	if k == 0 {
		return
	}
	f.candidates(src, k)
	f.ordered = append(f.ordered[:0], f.keys...)
	selectLargest(f.keys, k)
	least := slices.Min(f.keys[:k])
	f.bad = f.bad || slices.Max(f.keys[:k])>>32 >= 0x7f800000
	values, i := dst[2*k:], 0
	for _, key := range f.ordered {
		if key < least {
			continue
		}
		place := ^uint16(key)
		binary.LittleEndian.PutUint16(dst[2*i:], place)
		binary.LittleEndian.PutUint32(values[4*i:], math.Float32bits(src[place]))
		i++
	}
}

// candidates fills f.keys with at least k values, all that are as large as some
// bound. The bound is last time's, which runs of one gradient have nearly in
// common; it decides about speed only.
func (f *TopK) candidates(src []float32, k int) {
	if cap(f.keys) < len(src) {
		f.keys = make([]uint64, 0, min(roundUp(len(src), 1024), topRun))
	}
	bound := f.guess
	for {
		f.keys = f.kernels.reaching(f.keys[:0], src, bound)
		n := len(f.keys)
		switch {
		case n < k && bound == 0:
			panic("wire: values that are less than nothing")
		case n < k:
			bound = lower(bound)
			continue
		case n > 3*k && n > k+64:
			bound = f.nearer(k) // for the next run
		case n < k+k/4:
			bound -= bound >> 8 // a little lower: a second pass costs more
		}
		f.guess = bound
		return
	}
}

// lower is a magnitude that is a quarter, or nothing.
func lower(bits uint32) uint32 {
	if bits < 2<<23 {
		return 0
	}
	return bits - 2<<23
}

// nearer is a bound that about 3k/2 of the present candidates reach, going by
// some of them.
func (f *TopK) nearer(k int) uint32 {
	const sample = 256
	var some [sample]uint64
	n := min(sample, len(f.keys))
	step := len(f.keys) / n
	for i := range n {
		some[i] = f.keys[i*step]
	}
	at := min(max(1, k*3/2*n/len(f.keys)), n)
	selectLargest(some[:n], at)
	return uint32(slices.Min(some[:at]) >> 32)
}

// selectLargest moves the k largest keys, which are all different, to the front
// (Hoare's selection with the median of three).
func selectLargest(keys []uint64, k int) {
	for lo, hi := 0, len(keys)-1; lo < hi; {
		pivot := median(keys[lo], keys[(lo+hi)/2], keys[hi])
		i, j := lo, hi
		for i <= j {
			for keys[i] > pivot {
				i++
			}
			for keys[j] < pivot {
				j--
			}
			if i <= j {
				keys[i], keys[j] = keys[j], keys[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k-1 <= j:
			hi = j
		case k-1 >= i:
			lo = i
		default:
			return
		}
	}
}

func median(a, b, c uint64) uint64 { return max(min(a, b), min(max(a, b), c)) }

// Decode implements Format.
func (f *TopK) Decode(dst []float32, src []byte) {
	clear(dst)
	f.DecodeAdd(dst, src)
}

// DecodeAdd implements Format.
func (f *TopK) DecodeAdd(dst []float32, src []byte) {
	f.Runs(src, len(dst), func(src []byte, lo, hi int) {
		k, run := f.count(hi-lo), dst[lo:hi]
		values := src[2*k:]
		for i := range k {
			if at := int(binary.LittleEndian.Uint16(src[2*i:])); at < len(run) { // a peer's number
				run[at] += math.Float32frombits(binary.LittleEndian.Uint32(values[4*i:]))
			}
		}
	})
}

func roundUp(n, k int) int { return (n + k - 1) / k * k }
