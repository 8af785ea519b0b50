//go:build !amd64

package pack

// kernels are the loops of this package in vectors, of which this processor has
// none.
type kernels struct{}

func chosenKernels() kernels { return kernels{} }

func (kernels) fast() bool { return false }

func (kernels) encode(_, _ []byte, _ Kind, _ *scratch) int { return 0 }

func (kernels) decode(_, _ []byte, _ Kind, _ *scratch) int { return 0 }
