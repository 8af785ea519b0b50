package data

import (
	"encoding/binary"
	"fmt"
)

// syntheticLimit bounds the bytes of one made-up set.
const syntheticLimit = 16 << 30

// newSynthetic makes images whose pixels are the mean of noise and a pattern
// of their class, so that a network can learn them. Image i has the class
// i mod classes. Everything is a pure function of (seed, part, i).
func newSynthetic(c Config, part uint64, n int) (*Images, error) {
	out := &Images{Channels: c.Channels, Height: c.Height, Width: c.Width, Classes: c.Classes}
	key := "data.train_samples"
	if part != 0 {
		key = "data.test_samples"
	}
	if err := c.checkSynthetic(key, n); err != nil {
		return nil, err
	}
	size := out.SampleSize()
	out.Labels = make([]int32, n)
	out.Pixels = room[byte](n * size)
	for i := range n {
		class := i % c.Classes
		out.Labels[i] = int32(class)
		noise := newStream(randomNoise, c.Seed, part, uint64(i))
		pattern := newStream(randomPattern, c.Seed, 0, uint64(class))
		fillNoise(out.Sample(i), &noise, &pattern)
	}
	return out, nil
}

// fillNoise writes the mean of both streams' bytes, eight at a time.
func fillNoise(pixels []byte, noise, pattern *stream) {
	const even = 0x7f7f7f7f7f7f7f7f
	for len(pixels) > 0 {
		var eight [8]byte
		binary.LittleEndian.PutUint64(eight[:], noise.next()>>1&even+pattern.next()>>1&even)
		pixels = pixels[copy(pixels, eight[:]):]
	}
}

func (c Config) checkSynthetic(key string, n int) error {
	const most = 1 << 16
	for _, v := range []struct {
		key   string
		value int
	}{{"channels", c.Channels}, {"height", c.Height}, {"width", c.Width}, {"classes", c.Classes}} {
		if v.value < 1 || v.value > most {
			return fmt.Errorf("data.%s: %d is out of range: expected 1 to %d", v.key, v.value, most)
		}
	}
	size := uint64(c.Channels) * uint64(c.Height) * uint64(c.Width)
	if n < 1 || uint64(n) > syntheticLimit/size {
		return fmt.Errorf("%s: %d made-up images of %d bytes: expected at least one and at most %d GiB",
			key, n, size, syntheticLimit>>30)
	}
	return nil
}
