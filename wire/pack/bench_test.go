package pack

import (
	"fmt"
	"testing"
)

// The rate of values, which want to be in the cache: a message of them.
func BenchmarkPack(b *testing.B) {
	r := newRand(b)
	for _, k := range kinds {
		n := 65024 / k.Size()
		values := fill(r, k, n, 1)
		packed := make([]byte, Bound(k, n))
		length := Encode(packed, values, k)
		for _, v := range several() {
			b.Run(fmt.Sprintf("kind %d/encode by %+v", k, v), func(b *testing.B) {
				b.SetBytes(int64(len(values)))
				var space scratch
				for b.Loop() {
					for lo, at := 0, 0; lo < len(values); lo += blockLen * k.Size() {
						at += encodeBlock(v, packed[at:], values[lo:min(lo+blockLen*k.Size(), len(values))], k, &space)
					}
				}
				b.ReportMetric(float64(length)/float64(len(values)), "ratio")
			})
			b.Run(fmt.Sprintf("kind %d/decode by %+v", k, v), func(b *testing.B) {
				b.SetBytes(int64(len(values)))
				d := decoding{kind: k, vectors: v}
				for b.Loop() {
					if err := d.all(values, packed[:length]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
