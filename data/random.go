package data

import "math/bits"

// The uses of random numbers in this package; each has streams of its own.
const (
	randomOrder uint64 = iota + 1
	randomAugment
	randomNoise
	randomPattern
	randomText
)

// golden is 2^64 divided by the golden ratio, made odd.
const golden = 0x9e3779b97f4a7c15

// stream is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014): the state grows by an odd constant, the output is
// the state mixed. It is spelled out here because orders and augmentations are
// part of what a checkpoint promises and must never change with a Go release.
type stream struct{ state uint64 }

// newStream returns the stream that belongs to the key (use, a, b, c).
func newStream(use, a, b, c uint64) stream {
	h := mix(use * golden)
	h = mix((h ^ a) + golden)
	h = mix((h ^ b) + golden)
	h = mix((h ^ c) + golden)
	return stream{h}
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (s *stream) next() uint64 {
	s.state += golden
	return mix(s.state)
}

// below returns an even choice from [0, n), n > 0, by multiplication and
// rejection (Lemire, "Fast random integer generation in an interval", 2019).
func (s *stream) below(n uint64) uint64 {
	hi, lo := bits.Mul64(s.next(), n)
	for limit := -n % n; lo < limit; {
		hi, lo = bits.Mul64(s.next(), n)
	}
	return hi
}
