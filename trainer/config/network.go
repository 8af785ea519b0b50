package config

import (
	"github.com/gradfusion/gradfusion/amp"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/optim"
)

// Network returns the model's settings in models' form, for samples of a shape.
// A setting that belongs to another model is left out.
func (c *Config) Network(in data.Shape) models.Config {
	m := c.Model
	out := models.Config{Name: m.Name, Channels: in.Channels, Height: in.Height, Width: in.Width, Classes: in.Classes,
		Vocabulary: in.Vocabulary, Context: in.Context, Dropout: float32(m.Dropout)}
	if c.belongsTo("model.layers") == "" {
		out.Layers, out.Heads, out.Features, out.SparseEmbedding = m.Layers, m.Heads, m.Width, m.SparseEmbedding
	}
	if c.belongsTo("model.stem") == "" {
		out.Stem = m.Stem
	}
	if c.belongsTo("model.stages") == "" {
		out.Shortcut, out.Stages, out.BaseChannels = m.Shortcut, m.Stages, m.BaseChannels
	}
	if c.belongsTo("model.hidden") == "" {
		out.Hidden = m.Hidden
	}
	return out
}

// Optimizer returns the settings in optim's form.
func (o Optim) Optimizer() optim.Config {
	out := optim.Config{Name: o.Name, Momentum: float32(o.Momentum), Dampening: float32(o.Dampening), Beta1: float32(o.Beta1), Beta2: float32(o.Beta2),
		Alpha: float32(o.Alpha), Trust: float32(o.Trust), Epsilon: float32(o.Epsilon), WeightDecay: float32(o.WeightDecay), DecayNormsAndBiases: o.DecayNormsAndBiases, Lazy: o.Lazy}
	if (o.Name == "momentum" || o.Name == "nesterov") && o.Momentum == 0 {
		out.Name = "sgd" // the same update; a zero there would mean 0.9
	}
	return out
}

// Settings returns the settings in amp's form.
func (a AMP) Settings() amp.Config {
	level, _ := amp.ParseLevel(a.Level) // which Validate has checked
	return amp.Config{Level: level, BF16: a.Type == "bf16", LossScale: float64(a.LossScale), RoundNorms: !a.KeepBatchNormFP32}
}

// Rates returns the learning rate's course over a run of total steps in
// optim's form.
func (o Optim) Rates(total int) optim.ScheduleConfig {
	s := o.Schedule
	return optim.ScheduleConfig{Name: s.Name, Warmup: s.Warmup, Gamma: s.Gamma, StepSize: s.StepSize, Milestones: s.Milestones,
		Power: s.Power, Start: s.Start, Final: s.Final, Base: float32(o.LR), Total: total}
}
