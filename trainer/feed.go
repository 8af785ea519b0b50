package trainer

import (
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel"
)

// openLoader starts to prepare this rank's micro-batches, from the step on that
// comes next.
func (s *session) openLoader() error {
	hold := 1
	for _, step := range []int{s.sampler.Size(0), s.sampler.Size(s.sampler.StepsPerEpoch() - 1)} { // the last one of an epoch may be shorter
		lo, hi := data.Run(data.Micros(step, s.micro), s.mesh.Data, s.mesh.At.Data)
		list, err := s.scheduleOf(hi - lo)
		if err != nil {
			return err
		}
		hold = max(hold, mostFed(list[s.mesh.At.Pipeline], len(s.owners)))
	}
	parts := s.sampler.Parts(s.fusion.Completed(), s.total, s.micro, s.mesh.Data, s.mesh.At.Data)
	var err error
	if s.reads() {
		s.feeder, err = s.newFeeder(s.training, parts, hold)
	}
	return err
}

// reads reports whether this rank reads samples: the first stage their inputs,
// the last one their targets.
func (s *session) reads() bool {
	return s.owners[0] == s.mesh.At.Pipeline || s.owners[len(s.owners)-1] == s.mesh.At.Pipeline
}

// deviceBatch wraps samples in host memory.
func (s *session) deviceBatch(b *data.Batch, done func()) parallel.Batch {
	input, shape := s.input(b.Samples, len(b.Indices))
	return parallel.Batch{Input: input, Shape: shape, Target: device.FromI32(b.Y), Done: done}
}

// input wraps what the network reads of n samples: images, or windows of tokens.
func (s *session) input(of data.Samples, n int) (device.Buf, nn.Shape) {
	shape := s.data.Shape()
	if s.data.Text != nil {
		return device.FromI32(of.Tokens), nn.Plain(n, shape.Context)
	}
	return device.FromF32(of.X), nn.Plain(n, shape.Channels, shape.Height, shape.Width)
}

// targets returns how many targets a sample has.
func (s *session) targets() int { return s.training.Sizes().Y }
