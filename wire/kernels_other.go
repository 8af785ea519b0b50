//go:build !amd64

package wire

// kernels are the loops of this package in vectors, of which this processor has
// none: each says that it has done nothing.
type kernels struct{}

func chosenKernels() kernels { return kernels{} }

func (kernels) narrow(bool, []byte, []float32) int { return 0 }

func (kernels) widen(bool, []float32, []byte, bool) int { return 0 }

func (kernels) quantise(*Blocks, []byte, []float32, []float32, random) int { return 0 }

func (kernels) expand(*Blocks, []float32, []byte, bool) int { return 0 }

func (kernels) dot(_ *[dotLanes]float32, _, _ []float32) int { return 0 }

func (kernels) addScaled(_, _ []float32, _ float32) int { return 0 }

func (kernels) momentum(_, _, _ []float32, _ float32, _ bool) int { return 0 }

func (kernels) largest(x []float32) uint32 { return largest(x) }

func (kernels) add(_, _ []float32) int { return 0 }

func (kernels) reaching(keys []uint64, src []float32, bound uint32) []uint64 {
	return portableReaching(keys, src, bound, 0)
}
