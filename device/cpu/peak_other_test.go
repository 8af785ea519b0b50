//go:build !amd64

package cpu

// PeakRounds returns nothing: there is no such loop for other architectures.
func PeakRounds(string) (rounds func(n int), operations int) { return nil, 0 }
