package config

import "github.com/gradfusion/gradfusion/optim"

// Optimizer returns the settings in optim's form.
func (o Optim) Optimizer() optim.Config {
	out := optim.Config{Name: o.Name, Momentum: float32(o.Momentum), Dampening: float32(o.Dampening), Beta1: float32(o.Beta1), Beta2: float32(o.Beta2),
		Epsilon: float32(o.Epsilon), WeightDecay: float32(o.WeightDecay), DecayNormsAndBiases: o.DecayNormsAndBiases}
	if (o.Name == "momentum" || o.Name == "nesterov") && o.Momentum == 0 {
		out.Name = "sgd" // the same update; a zero there would mean 0.9
	}
	return out
}

// Rates returns the learning rate's course over a run of total steps in
// optim's form.
func (o Optim) Rates(total int) optim.ScheduleConfig {
	s := o.Schedule
	return optim.ScheduleConfig{Name: s.Name, Warmup: s.Warmup, Gamma: s.Gamma, StepSize: s.StepSize, Milestones: s.Milestones,
		Power: s.Power, Final: s.Final, Base: float32(o.LR), Total: total}
}
