package trainer

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel"
)

// The settings of each package, from the sections of the configuration.

func (s *session) optimizer() (optim.Optimizer, error) {
	o := s.withoutMomentum(s.cfg.Optim.Optimizer())
	if _, err := optim.Groups(nn.Params(s.model.Blocks), o); err != nil {
		return nil, err
	}
	return optim.New(o)
}

func (s *session) fusionConfig(opt optim.Optimizer) parallel.FusionConfig {
	f := s.cfg.Fusion
	var world collective.Comm
	if s.cutOverRanks() {
		world = s.comm
	}
	c := parallel.FusionConfig{
		World: world, SyncBatchNorm: s.norms,
		Device: s.device, ThresholdMB: s.cfg.BucketMB(len(s.comm.Hosts()), s.comm.Size()), FirstMB: f.FirstMB, NoOverlap: !f.Overlap,
		Deterministic: s.cfg.Train.Deterministic == "world",
		Shard:         s.shards,
		LocalSGD:      s.cfg.Train.LocalSGD,
		Wire:          s.compression(),
		FindUnused:    f.FindUnused, CheckEvery: f.CheckEvery,
		Targets: s.targets(), ClipNorm: s.cfg.Optim.ClipNorm, Events: s.job.Events,
		Scaler: s.scaler, Masters: s.cfg.AMP.Settings().Masters(),
	}
	s.overlapForward(&c, opt)
	return c
}

// alone is the Comm of a job with one rank.
func alone() collective.Comm {
	return collective.NewGroup(inproc.New(1)[0], collective.GroupConfig{Name: "world"})
}

func (s *session) executorConfig() parallel.ExecutorConfig {
	c := parallel.ExecutorConfig{
		Fusion: s.fusion, Device: s.device, Loss: s.loss,
		Seed: s.cfg.Train.Seed, Recompute: s.recomputes(), Precision: s.precision(), Expect: s.expect,
		Wire:   s.activationWire(),
		Events: s.job.Events,
	}
	if s.feeder != nil {
		c.Feed = s.feeder.feed
	}
	if s.isCut() {
		c.Pipe, c.Schedule = s.mesh.Column, s.scheduleOf
	}
	return c
}

// activationWire is parallel.activation_wire as a type.
func (s *session) activationWire() device.Type {
	switch s.cfg.Parallel.ActivationWire {
	case "f16":
		return device.F16
	case "bf16":
		return device.BF16
	}
	return device.F32
}
