package wire

// random gives each element 16 random bits that depend on the seed and on its
// place only, so that rounding needs no state and can be repeated. Elements 32g+l
// and 32g+16+l share the hash of counter 16g+l, its lower and its upper half:
// vectors of 16 lanes then compute the same.
type random struct{ first, second uint32 }

// newRandom spreads a seed over the two keys (the finisher of MurmurHash3).
func newRandom(seed uint64) random {
	seed ^= seed >> 33
	seed *= 0xff51afd7ed558ccd
	seed ^= seed >> 33
	seed *= 0xc4ceb9fe1a85ec53
	seed ^= seed >> 33
	return random{uint32(seed), uint32(seed >> 32)}
}

// at is the hash of a counter.
func (r random) at(counter uint32) uint32 {
	x := counter + r.first
	x ^= x >> 16
	x *= 0x7feb352d
	x ^= x >> 15
	x ^= r.second
	x *= 0x846ca68b
	return x ^ x>>16
}

// Seed mixes numbers that tell an encoding apart, such as step, bucket and rank.
func Seed(numbers ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, n := range numbers {
		h = (h ^ n) * 0xd6e8feb86659fd93
		h ^= h >> 32
		h *= 0xd6e8feb86659fd93
		h ^= h >> 29
	}
	return h
}
