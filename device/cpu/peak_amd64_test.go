package cpu

// PeakRounds returns a loop of n rounds of the widest fused sums that a kernel
// set uses, and the operations of a round.
func PeakRounds(set string) (rounds func(n int), operations int) {
	switch set {
	case "avx512":
		return peakAVX512, 12 * 16 * 2
	case "avx2":
		return peakAVX2, 12 * 8 * 2
	}
	return nil, 0
}
