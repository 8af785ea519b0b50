package trainer

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel"
)

// openLoader starts to prepare this rank's micro-batches, from the step on that
// comes next.
func (s *session) openLoader() (err error) {
	steps := s.sampler.Parts(s.fusion.Completed(), s.total, s.micro, s.mesh.Data, s.mesh.At.Data)
	s.loader, err = data.NewLoader(s.training, steps, data.LoaderConfig{Micro: s.micro, Workers: s.cfg.Data.Workers})
	return err
}

// feed hands the executor the next micro-batch of this rank, which is the one
// that the loader has prepared.
func (s *session) feed(ctx context.Context, m parallel.Micro) (parallel.Batch, error) {
	b, err := s.loader.Next(ctx)
	if err != nil {
		return parallel.Batch{}, err
	}
	if b.Micro != m.Index {
		return parallel.Batch{}, fmt.Errorf("micro-batch %d was loaded where %d is due", b.Micro, m.Index)
	}
	s.batch = b
	return s.deviceBatch(b, s.done), nil
}

func (s *session) done() { s.loader.Release(s.batch) }

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
