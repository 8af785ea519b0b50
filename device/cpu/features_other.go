//go:build !amd64

package cpu

// fastKernels returns no set: assembly exists for amd64 only.
func fastKernels() (set *kernelSet, missing string) {
	return nil, "an amd64 processor with AVX2 and FMA"
}
