package trainer

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel"
)

// prefixFeedback is of what a lossy wire has not sent yet.
const prefixFeedback = "feedback/"

// compression is fusion.wire in parallel's form. Top-k adds up the momentum of
// an optimizer that has one, which withoutMomentum then takes from it. PowerSGD
// begins after a twentieth of the run, where a default warm-up ends.
func (s *session) compression() parallel.Compression {
	w, o := s.cfg.Fusion.Wire, s.cfg.Optim
	c := parallel.Compression{Format: w.Name, AcrossHosts: s.cfg.Fusion.WireScope == "across-hosts", Start: w.Start, Rank: w.Rank, Seed: s.cfg.Train.Seed}
	if w.Name == parallel.PowerSGD && w.Start == 0 {
		c.Start = max(s.total/20, 10)
	}
	if w.Name == "topk" && (o.Name == "momentum" || o.Name == "nesterov") {
		c.Momentum, c.Nesterov = float32(o.Momentum), o.Name == "nesterov"
	}
	return c
}

// withoutMomentum is an optimizer whose momentum is the wire's. Momentum adds a
// step's weight decay up to 1/(1 - momentum) of it, so without one the decay is
// that much larger.
func (s *session) withoutMomentum(o optim.Config) optim.Config {
	c := s.compression()
	if c.Momentum == 0 {
		return o
	}
	return optim.Config{Name: "sgd", WeightDecay: o.WeightDecay / (1 - c.Momentum), DecayNormsAndBiases: o.DecayNormsAndBiases}
}

// warnOfWire tells of a format that has nothing to do. 16-bit floats between hosts
// are advice that configurations carry for when there are several.
func (s *session) warnOfWire() {
	f := s.cfg.Fusion
	if f.WireScope == "across-hosts" && len(s.comm.Hosts()) == 1 && f.Wire.Keeps() {
		s.warnings = append(s.warnings, fmt.Sprintf("fusion.wire: %s compresses nothing: fusion.wire_scope is across-hosts, and all ranks are on one host", f.Wire.Name))
	}
}

// keptSection has, on rank 0, what the ranks have not sent yet. A model that is cut
// is not saved with a wire that keeps anything.
func (s *session) keptSection(ctx context.Context) *section {
	if !s.fusion.Keeps() || s.cutOverRanks() {
		return &section{prefix: prefixFeedback, each: func(func(parallel.Named) error) error { return nil }}
	}
	return &section{prefix: prefixFeedback, layout: s.fusion.KeptLayout(), each: func(visit func(parallel.Named) error) error {
		return s.fusion.EachKept(ctx, visit)
	}}
}

// keptDigests stands for what is kept in the state's hash; it is collective.
func (s *session) keptDigests(ctx context.Context) ([]parallel.Named, error) {
	if !s.fusion.Keeps() {
		return nil, nil
	}
	digests, err := s.fusion.KeptDigests(ctx)
	digests.Name = prefixFeedback + digests.Name
	return []parallel.Named{digests}, err
}

// resumeKept has what was kept filled in: by rank 0 from the checkpoint, on the
// others by a broadcast.
func (s *session) resumeKept(ctx context.Context, r *resumption) {
	s.fusion.RestoreKept(func(name string) ([]float32, error) {
		size := []int64{0}
		if s.comm.Rank() == 0 {
			n, _ := r.size(prefixFeedback + name)
			size[0] = int64(n / device.F32.Size())
		}
		call := collective.Call{Kind: plan.Broadcast, In: device.FromI64(size), Label: "size of " + name}
		if err := s.comm.Start(ctx, call).Wait(ctx); err != nil || size[0] == 0 {
			return nil, err
		}
		out := device.FromF32(make([]float32, size[0]))
		if s.comm.Rank() == 0 {
			if err := r.read(prefixFeedback+name, out.Bytes()); err != nil {
				return nil, err
			}
		}
		call = collective.Call{Kind: plan.Broadcast, In: out, Label: name}
		return out.F32(), s.comm.Start(ctx, call).Wait(ctx)
	})
}
