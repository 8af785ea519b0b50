package nn

// Hash mixes words into one, by the finaliser of splitmix64 (Steele, Lea,
// Flood 2014): the source of every seed, so that what is random depends on
// what it is for and on nothing else.
func Hash(words ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range words {
		h ^= w
		h += 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// HashString is Hash over a seed and the bytes of a name.
func HashString(seed uint64, name string) uint64 {
	h := Hash(seed, uint64(len(name)))
	for i := range len(name) {
		h = Hash(h, uint64(name[i]))
	}
	return h
}
