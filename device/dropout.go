package device

// Keeps reports whether dropout with probability p keeps element i: a pure
// function, the same on every device. It draws 24 bits of SplitMix64 (Steele,
// Lea and Flood, 2014) at position i of the sequence that seed starts.
func Keeps(seed uint64, i int, p float32) bool {
	return DropoutBits(seed, i) >= DropoutThreshold(p)
}

// DropoutBits returns the 24 random bits of element i.
func DropoutBits(seed uint64, i int) uint32 {
	z := DropoutState(seed, i)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return uint32((z ^ z>>31) >> 40)
}

// DropoutState returns the state of the generator for element i: each element's
// is 0x9e3779b97f4a7c15 above that of the one before.
func DropoutState(seed uint64, i int) uint64 { return seed + uint64(i+1)*0x9e3779b97f4a7c15 }

// DropoutThreshold is the value below which the bits drop an element.
func DropoutThreshold(p float32) uint32 { return uint32(p * (1 << 24)) }
