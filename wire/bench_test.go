package wire

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkFormats shows the speed of one piece of a bucket, in bytes of float32.
func BenchmarkFormats(b *testing.B) {
	for _, name := range Names()[1:] {
		f, err := New(Config{Name: name})
		if err != nil {
			b.Fatal(err)
		}
		x := make([]float32, 1<<16)
		r := rand.New(rand.NewPCG(1, 1))
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		kept, sum, dst := append([]float32(nil), x...), make([]float32, len(x)), make([]byte, f.EncodedLen(len(x)))
		run := func(what string, once func(i int)) {
			b.Run(name+"/"+what, func(b *testing.B) {
				b.SetBytes(4 * int64(len(x)))
				for i := range b.N {
					once(i)
				}
			})
		}
		run("encode", func(i int) { f.Encode(dst, x, uint64(i)) })
		run("keep", func(i int) {
			copy(kept, x)
			f.EncodeKeeping(dst, kept, uint64(i))
		})
		run("decode", func(int) { f.Decode(sum, dst) })
		run("add", func(int) { f.DecodeAdd(sum, dst) })
	}
}
