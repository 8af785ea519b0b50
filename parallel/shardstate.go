package parallel

import (
	"context"
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/optim"
)

// The state of a sharded optimizer is saved whole and by name, so that any number
// of ranks, sharded or not, can go on with it.

// held is the optimizer's state on this rank, by parameter and name.
type held map[*entry]map[string]device.Buf

// held returns this rank's state, and the names of the tensors that every
// parameter of the stage has. It is collective: a rank may have no part of
// anything, but the first one has a part of each bucket.
func (g *GradFusion) held(ctx context.Context, s *stage) (held, []string, error) {
	own, names := held{}, []string(nil)
	err := g.opt.State(func(name string, seg optim.Segment, t device.Buf) error {
		e := s.reducer.entries[seg.Param]
		if e == nil {
			return nil // another stage's
		}
		if own[e] == nil {
			own[e] = map[string]device.Buf{}
		}
		own[e][name] = t
		if len(own) == 1 {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	lists, err := gatherBytes(ctx, s.Comm, []byte(strings.Join(names, " ")), "names of the optimizer's state")
	if err != nil {
		return nil, nil, err
	}
	return own, strings.Fields(string(lists[0])), nil
}

// eachState calls f for every state tensor of the model's parameters that this
// rank's stages have, with the part that this rank holds and where it lies in the
// whole, in one order on all ranks. It is collective over the stages' Comms if
// the optimizer is sharded.
func (g *GradFusion) eachState(ctx context.Context, f func(s *stage, e *entry, name string, part device.Buf, lo int) error) error {
	for _, s := range g.stages {
		own, names, err := g.held(ctx, s)
		if err != nil {
			return g.stageNamed(s, err)
		}
		for _, b := range s.reducer.buckets {
			for _, e := range b.entries {
				lo, _ := e.own(s.Comm.Rank())
				for _, name := range names {
					if err := f(s, e, name, own[e][name], lo); err != nil {
						return g.stageNamed(s, fmt.Errorf("%s of %s: %w", name, e.param.Name, err))
					}
				}
			}
		}
	}
	return nil
}

// wholeState gathers the state of a sharded optimizer, in new memory on every
// rank.
func (g *GradFusion) wholeState(ctx context.Context) (out []Named, err error) {
	err = g.eachState(ctx, func(s *stage, e *entry, name string, part device.Buf, lo int) error {
		n := e.param.Len()
		whole := device.FromF32(make([]float32, n))
		copy(whole.F32()[lo:], part.F32())
		call := collective.Call{Kind: plan.AllGather, In: whole, InBounds: e.parts(s.Comm.Size()), Label: "state of " + e.param.Name}
		if err := s.Comm.Start(ctx, call).Wait(ctx); err != nil {
			return err
		}
		if g.firstCopy(e.param) {
			out = append(out, Named{StateName(e.param.Name, name), []int{n}, whole})
		}
		return nil
	})
	return out, err
}

// restoreParts loads whole tensors and keeps this rank's part of each.
func (g *GradFusion) restoreParts(ctx context.Context, load func(param, name string, to device.Buf) error) error {
	return g.eachState(ctx, func(_ *stage, e *entry, name string, part device.Buf, lo int) error {
		whole := device.FromF32(make([]float32, e.param.Len()))
		if err := load(e.param.Name, name, whole); err != nil {
			return err
		}
		copy(part.F32(), whole.F32()[lo:])
		return nil
	})
}

// gatherGradients gives every rank of a stage the sums that a sharded optimizer
// leaves with their owners.
func (g *GradFusion) gatherGradients(ctx context.Context) error {
	for _, s := range g.stages {
		for _, b := range s.reducer.buckets {
			if !b.scattered() || s.Comm.Size() == 1 {
				continue
			}
			call := collective.Call{Kind: plan.AllGather, In: b.grad, InBounds: b.bounds, Label: b.label}
			if err := s.Comm.Start(ctx, call).Wait(ctx); err != nil {
				return g.stageNamed(s, err)
			}
		}
	}
	return nil
}

// OptimizerBytes is the size of the optimizer's state on this rank; 0 before the
// first step, and for an optimizer that does not show its state.
func (g *GradFusion) OptimizerBytes() int {
	bytes := 0
	if g.norm == nil {
		return 0
	}
	err := g.opt.State(func(_ string, _ optim.Segment, t device.Buf) error {
		bytes += t.Size()
		return nil
	})
	if err != nil {
		return 0
	}
	return bytes
}
