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
		b.Run(fmt.Sprintf("kind %d/encode", k), func(b *testing.B) {
			b.SetBytes(int64(len(values)))
			for b.Loop() {
				Encode(packed, values, k)
			}
			b.ReportMetric(float64(length)/float64(len(values)), "ratio")
		})
		b.Run(fmt.Sprintf("kind %d/decode", k), func(b *testing.B) {
			b.SetBytes(int64(len(values)))
			for b.Loop() {
				if err := Decode(values, packed[:length], k); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("kind %d/plain encode", k), func(b *testing.B) {
			b.SetBytes(int64(len(values)))
			var space scratch
			for b.Loop() {
				for at := 0; at < len(values); at += blockLen * k.Size() {
					encodeBlock(kernels{}, packed, values[at:min(at+blockLen*k.Size(), len(values))], k, &space)
				}
			}
		})
		b.Run(fmt.Sprintf("kind %d/plain decode", k), func(b *testing.B) {
			b.SetBytes(int64(len(values)))
			for b.Loop() {
				d := decoding{kind: k}
				Encode(packed, values, k)
				if err := d.all(values, packed[:length]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
