package trainer

import (
	"github.com/gradfusion/gradfusion/nn"
)

// fitsMemory refuses a network that this host cannot hold, before the system
// ends the process over it. It counts the least that training takes, weights
// and gradients in float32, for all ranks of this host.
func (s *session) fitsMemory() error {
	const gib = 1 << 30
	parameters := 0.0 // the product of two widths may be beyond an int
	for _, p := range nn.Params(s.model.Blocks) {
		size := 1.0
		for _, n := range p.Shape {
			size *= float64(n)
		}
		parameters += size
	}
	need, have := parameters*2*4*float64(localRanks(s.comm)), float64(memory())
	if have == 0 || need <= have {
		return nil
	}
	return s.cfg.Errorf("model.name", "%s as configured has %.3g parameters; weights and gradients of the ranks on this host take %.0f GiB, and it has %.0f",
		s.model.Name, parameters, need/gib, have/gib)
}
