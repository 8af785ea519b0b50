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
func (s *session) openLoader() error {
	augment, err := data.ParseAugment(s.cfg.Data.Augment)
	if err != nil {
		return err
	}
	batcher, err := data.NewBatcher(s.data.Train, s.data.Normalization, augment, s.cfg.Train.Seed)
	if err != nil {
		return err
	}
	steps := s.sampler.Parts(s.fusion.Completed(), s.total, s.micro, s.comm.Size(), s.comm.Rank())
	s.loader, err = data.NewLoader(batcher, steps, data.LoaderConfig{Micro: s.micro, Workers: s.cfg.Data.Workers})
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

// deviceBatch wraps samples in host memory: images for networks that begin with
// a convolution, rows for the others.
func (s *session) deviceBatch(b *data.Batch, done func()) parallel.Batch {
	set := s.data.Train
	return parallel.Batch{
		Input:  device.FromF32(b.X),
		Shape:  nn.Plain(len(b.Y), set.Channels, set.Height, set.Width),
		Target: device.FromI32(b.Y),
		Done:   done,
	}
}
