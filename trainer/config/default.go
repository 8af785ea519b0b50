package config

import (
	"time"

	"github.com/gradfusion/gradfusion/data"
)

// Default returns a new Config with every default.
func Default() *Config {
	return &Config{
		Model: Model{Name: "resnet20", Recompute: "none"},
		Data:  data.Config{}.WithDefaults(),
		Optim: Optim{Name: "momentum", LR: 0.1, Momentum: 0.9, Beta1: 0.9, Beta2: 0.999, Alpha: 0.99, Trust: 0.001, Epsilon: 1e-8, WeightDecay: 5e-4,
			Schedule: Schedule{Name: "cosine", Warmup: 0.05, Gamma: 0.1, StepSize: 0.3, Power: 1, Start: 0.04}},
		Train:    Train{Epochs: 5, Seed: 1, Deterministic: "off", EvalEvery: Every{Epochs: 1}},
		Parallel: Parallel{Pipeline: 1, Tensor: 1, Schedule: "1f1b", VirtualStages: 2, ActivationWire: "f32"},
		Fusion:   Fusion{FirstMB: 1, Overlap: true, Wire: Wire{Name: "f32"}, WireScope: "all"},
		AMP:      AMP{Level: "O0", Type: "f16", KeepBatchNormFP32: true},
		Collective: Collective{Backend: "cpu", Transport: "auto", Algorithm: "auto", Timeout: 60 * time.Second,
			Stall: 5 * time.Second, Heartbeat: time.Second, Retry: 3, SocketsPerPeer: 1, TLS: TLS{Name: "off"}},
		Compute:    Compute{Kernels: "auto", Conv: "auto"},
		Launch:     Launch{NProc: Span{1, 1}, Rendezvous: "auto", Placement: "auto"},
		Checkpoint: Checkpoint{Every: Every{Epochs: 1}, Keep: 3, Async: true},
		Observe:    Observe{RunDir: "auto", LogEvery: 20, TensorBoard: true},
	}
}
