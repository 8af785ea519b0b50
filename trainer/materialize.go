package trainer

import (
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// materialize gives the parameters memory, if the host has enough for them and
// for what a step takes besides.
func (s *session) materialize() error {
	have := float64(memory())
	if err := s.fitsMemory(have, 0); err != nil {
		return err
	}
	for _, stage := range s.stages {
		if err := nn.Allocate(s.device, stage.Blocks); err != nil {
			return err
		}
	}
	if have > 0 {
		least, held, err := s.activations()
		if err != nil {
			return err
		}
		s.expect = int(least) * s.micro
		if err := s.fitsMemory(have, held); err != nil {
			return err
		}
	}
	// Who starts afresh and alone reads parameters first where they are used.
	if len(s.stages) == 1 && s.comm.Size() == 1 && !s.job.Resume && s.cfg.AMP.Settings().Masters() == device.F32 {
		s.filling = nn.FillAhead(s.stages[0].Blocks, s.cfg.Train.Seed)
		return nil
	}
	for _, stage := range s.stages {
		nn.Fill(stage.Blocks, s.cfg.Train.Seed)
	}
	return nil
}
