package pack

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fill makes n values of a kind, in one of several ways.
func fill(r *rand.Rand, k Kind, n, way int) []byte {
	b := make([]byte, n*k.Size())
	put := func(i int, bits uint32) {
		if k == F32 {
			binary.LittleEndian.PutUint32(b[4*i:], bits)
		} else {
			binary.LittleEndian.PutUint16(b[2*i:], uint16(bits))
		}
	}
	for i := range n {
		normal := math.Float32bits(float32(r.NormFloat64() * 1e-3))
		narrow := func(bits uint32) uint32 {
			switch k {
			case F16:
				e := int(bits>>23&255) - 127 + 15 + 10 // scaled by 1024
				if e <= 0 || e > 30 {
					return bits >> 16 & 0x8000
				}
				return bits>>16&0x8000 | uint32(e)<<10 | bits>>13&0x3ff
			case BF16:
				return bits >> 16
			}
			return bits
		}
		switch way {
		case 0: // any bits
			put(i, r.Uint32())
		case 1: // gradients
			put(i, narrow(normal))
		case 2: // zeros
		case 3: // gradients and zeros
			if r.IntN(3) > 0 {
				put(i, narrow(normal))
			}
		case 4: // special values
			special := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.NaN()), math.SmallestNonzeroFloat32, math.MaxFloat32, 1}
			put(i, narrow(math.Float32bits(special[r.IntN(len(special))])))
		case 5: // every exponent, but for a few each once
			put(i, narrow(uint32(i%256)<<23|r.Uint32()&0x807fffff))
		case 6: // far apart, so that all but one are escapes of a byte
			put(i, narrow(uint32([]int{250, 3, 4, 5, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110}[min(i%256, 1+r.IntN(13))])<<23))
		case 7: // equal
			put(i, narrow(math.Float32bits(-1.5)))
		}
	}
	return b
}

const ways = 8

var kinds = []Kind{F32, F16, BF16}

func newRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

// What comes out is what went in, by vectors and without, and the bytes are equal.
func TestRoundTrip(t *testing.T) {
	r := newRand(t)
	lengths := []int{0, 1, 2, 7, 8, 9, 63, 64, 65, 255, 256, 257, 511, 512, 768, 1000, 4096, 16368}
	for range 20 {
		lengths = append(lengths, r.IntN(3000))
	}
	for _, k := range kinds {
		for way := range ways {
			for _, n := range lengths {
				name := fmt.Sprintf("kind %d, way %d, %d values", k, way, n)
				values := fill(r, k, n, way)
				packed := make([]byte, Bound(k, n))
				packed = packed[:Encode(packed, values, k)]
				require.LessOrEqual(t, len(packed), len(values)+(n+255)/256, name)
				for _, v := range several() {
					require.Equal(t, encodedBy(v, values, k), packed, "%s by %+v", name, v)
				}
				out := make([]byte, len(values))
				for i := range out {
					out[i] = byte(r.Uint32())
				}
				require.NoError(t, Decode(out, packed, k), name)
				require.Equal(t, values, out, name)
				for _, v := range several() {
					clear(out)
					d := decoding{kind: k, vectors: v}
					require.NoError(t, d.all(out, packed), "%s by %+v", name, v)
					require.Equal(t, values, out, "%s by %+v", name, v)
				}
				if way == 2 {
					require.Equal(t, (n+255)/256, len(packed))
				}
			}
		}
	}
}

// encodedBy is Encode by other loops.
func encodedBy(vectors kernels, src []byte, k Kind) []byte {
	dst := make([]byte, Bound(k, len(src)/k.Size()))
	var space scratch
	at := 0
	for len(src) > 0 {
		n := min(blockLen*k.Size(), len(src))
		at += encodeBlock(vectors, dst[at:], src[:n], k, &space)
		src = src[n:]
	}
	return dst[:at]
}

// Gradients shrink to what the package comment says.
func TestRatio(t *testing.T) {
	r := newRand(t)
	for k, most := range []float64{0.845, 0.87, 0.69} {
		const n = 1 << 16
		packed := make([]byte, Bound(Kind(k), n))
		ratio := float64(Encode(packed, fill(r, Kind(k), n, 1), Kind(k))) / float64(n*Kind(k).Size())
		require.Less(t, ratio, most, "kind %d", k)
		require.Greater(t, ratio, most-0.02, "kind %d", k)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	values := fill(newRand(t), F32, 1000, 1)
	packed := make([]byte, Bound(F32, 1000))
	require.Zero(t, testing.AllocsPerRun(10, func() {
		n := Encode(packed, values, F32)
		if err := Decode(values, packed[:n], F32); err != nil {
			t.Fatal(err)
		}
	}))
}

func Example() {
	values := make([]byte, 4*1000) // zeros
	b := make([]byte, Bound(F32, 1000))
	b = b[:Encode(b, values, F32)]
	fmt.Println(len(b), Decode(values, b, F32))
	// Output: 4 <nil>
}
