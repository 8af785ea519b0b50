//go:build linux && (amd64 || arm64)

package shm

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRingKeepsOrder writes and reads frames of all lengths around the end of
// the ring, against a list.
func TestRingKeepsOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	memory := make([]byte, ringHead+64<<10)
	writer, reader := newRing(memory), newRing(memory)
	type sent struct {
		id    uint32
		bytes []byte
	}
	var waiting []sent
	for id := range uint32(20_000) {
		b := make([]byte, random.IntN(1<<random.IntN(14)))
		for i := range b {
			b[i] = byte(int(id) + i)
		}
		for !writer.write(frame{kind: frameData, id: id}, b) {
			f, got, ok, err := reader.read()
			require.NoError(t, err)
			require.True(t, ok, "a full ring has nothing to read")
			require.Equal(t, waiting[0].id, f.id)
			require.True(t, bytes.Equal(waiting[0].bytes, got))
			waiting = waiting[1:]
			reader.done(f)
		}
		waiting = append(waiting, sent{id, b})
	}
}

// FuzzRing: whatever is in the memory, a reader gets frames inside of it or an
// error.
func FuzzRing(f *testing.F) {
	good := make([]byte, 4096)
	frame{kind: frameEager, length: 100, size: 100, tag: 7}.put(good)
	f.Add(uint64(192), uint64(0), good)
	f.Add(uint64(4096), uint64(64), []byte{1})
	f.Add(^uint64(0), uint64(1<<63), good)
	f.Fuzz(func(t *testing.T, tail, head uint64, data []byte) {
		memory := make([]byte, ringHead+4096)
		copy(memory[ringHead:], data)
		r := newRing(memory)
		r.tail.Store(tail / frameAlign * frameAlign)
		r.at = head / frameAlign * frameAlign
		r.limit = r.at
		for range 100 {
			fr, b, ok, err := r.read()
			if err != nil || !ok {
				return
			}
			if len(b) != fr.length || fr.size < 0 {
				t.Fatalf("frame %+v of %d bytes", fr, len(b))
			}
			r.done(fr)
		}
	})
}
