package pack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Bytes that are cut short, go on or say what no block is are errors.
func TestDecodeRefuses(t *testing.T) {
	r := newRand(t)
	for _, k := range kinds {
		for _, way := range []int{0, 1, 2, 4, 5, 6} {
			for _, n := range []int{1, 70, 256, 600} {
				values := fill(r, k, n, way)
				packed := make([]byte, Bound(k, n))
				packed = packed[:Encode(packed, values, k)]
				out := make([]byte, len(values))
				for cut := range packed {
					require.Error(t, Decode(out, packed[:cut], k), "%d of %d bytes", cut, len(packed))
				}
				require.ErrorContains(t, Decode(out, append(packed, 0), k), "1 bytes follow")
			}
		}
	}
	require.ErrorContains(t, Decode(make([]byte, 4), []byte{8, 0, 0, 0, 0}, F32), "unknown kind 8")
	require.NoError(t, Decode(nil, nil, F32))
	require.Panics(t, func() { _ = Decode(make([]byte, 3), nil, F32) })
	require.Panics(t, func() { Encode(make([]byte, 4), make([]byte, 4), F32) })
}

// Any bytes decode to the same with vectors and without, or to an error with both.
func FuzzDecode(f *testing.F) {
	for _, k := range kinds {
		for way := range ways {
			values := fill(newRand(f), k, 300, way)
			packed := make([]byte, Bound(k, 300))
			f.Add(uint8(k), uint16(300), packed[:Encode(packed, values, k)])
		}
	}
	f.Add(uint8(0), uint16(256), []byte{2, 0xff})
	f.Fuzz(func(t *testing.T, kind uint8, n uint16, b []byte) {
		k := kinds[int(kind)%len(kinds)]
		length := int(n) % 1000 * k.Size()
		fast, plain := make([]byte, length), make([]byte, length)
		err := Decode(fast, b, k)
		for _, v := range several() {
			d := decoding{kind: k, vectors: v}
			again := d.all(plain, b)
			require.Equal(t, err == nil, again == nil, "%v, %v", err, again)
			if err != nil {
				require.Equal(t, err.Error(), again.Error())
			} else {
				require.Equal(t, plain, fast, "by %+v", v)
			}
		}
		if err != nil {
			return
		}
		packed := make([]byte, Bound(k, length/k.Size()))
		packed = packed[:Encode(packed, fast, k)]
		require.NoError(t, Decode(plain, packed, k))
		require.Equal(t, fast, plain)
	})
}
