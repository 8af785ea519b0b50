package wire

// kernels are the loops of this package in vectors, of which this processor has
// none: each says that it has done nothing.
type kernels struct{}

func chosenKernels() kernels { return kernels{} }

func (kernels) narrow(bool, []byte, []float32) int { return 0 }

func (kernels) widen(bool, []float32, []byte, bool) int { return 0 }

func (kernels) quantise(*Blocks, []byte, []float32, []float32, random) int { return 0 }

func (kernels) expand(*Blocks, []float32, []byte, bool) int { return 0 }

func (kernels) add(_, _ []float32) int { return 0 }

func (kernels) reaching(keys []uint64, src []float32, bound uint32) []uint64 {
	return portableReaching(keys, src, bound, 0)
}
