package trainer

import "github.com/gradfusion/gradfusion/nn"

// fitsMemory refuses a network or micro-batches that this host cannot hold,
// before the system ends the process over it. It counts the least that training
// takes for all ranks of this host: weights and gradients, and the pixels of the
// micro-batch at hand and of the next, in float32.
func (s *session) fitsMemory() error {
	const gib, float = 1 << 30, 4
	parameters := 0.0 // the product of two widths may be beyond an int
	for _, p := range nn.Params(s.model.Blocks) {
		size := 1.0
		for _, n := range p.Shape {
			size *= float64(n)
		}
		parameters += size
	}
	ranks, have := float64(localRanks(s.comm)), float64(memory())
	weights, pixels := 2*float*parameters*ranks, 2*float*float64(s.micro)*float64(s.data.Train.SampleSize())*ranks
	switch {
	case have == 0 || weights+pixels <= have:
		return nil
	case weights > pixels:
		return s.cfg.Errorf("model.name", "%s as configured has %.3g parameters; weights and gradients of the ranks on this host take %.0f GiB, and it has %.0f",
			s.model.Name, parameters, weights/gib, have/gib)
	}
	return s.cfg.Errorf("train.micro_batch", "micro-batches of %d samples take at least %.0f GiB for the ranks on this host, and it has %.0f; a smaller train.micro_batch accumulates gradients instead",
		s.micro, pixels/gib, have/gib)
}
