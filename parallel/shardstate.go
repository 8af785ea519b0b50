package parallel

import (
	"context"
	"fmt"
	"slices"
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
	lists, err := collective.GatherBytes(ctx, s.Comm, []byte(strings.Join(names, " ")), "names of the optimizer's state")
	if err != nil {
		return nil, nil, err
	}
	return own, strings.Fields(string(lists[0])), nil
}

// stateTensor is one of the optimizer's state tensors: what this rank holds of it.
type stateTensor struct {
	stage *stage
	entry *entry
	name  string
	part  device.Buf
}

// title is the tensor's name in checkpoints.
func (t *stateTensor) title() string { return StateName(t.entry.param.Name, t.name) }

// stateTensors lists the state of the parameters of this rank's stages in the
// order of their names in checkpoints, alike on all ranks that hold these stages.
// It is collective over the stages' Comms.
func (g *GradFusion) stateTensors(ctx context.Context) (out []stateTensor, err error) {
	for _, s := range g.stages {
		own, names, err := g.held(ctx, s)
		if err != nil {
			return nil, g.stageNamed(s, err)
		}
		for _, b := range s.reducer.buckets {
			for _, e := range b.entries {
				for _, name := range names {
					out = append(out, stateTensor{s, e, name, own[e][name]})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b stateTensor) int { return strings.Compare(a.title(), b.title()) })
	return out, nil
}

// StateLayout lists what EachState visits, without the values: Buf has a type only.
// It is collective like OptimizerState of a sharded optimizer.
func (g *GradFusion) StateLayout(ctx context.Context) (out []Named, err error) {
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	tensors, err := g.stateTensors(ctx)
	if err != nil {
		return nil, err
	}
	for i := range tensors {
		if t := &tensors[i]; g.firstCopy(t.entry.param) {
			out = append(out, Named{t.title(), []int{t.entry.param.Len()}, device.Buf{Type: device.F32}})
		}
	}
	return out, nil
}

// EachState calls visit for what OptimizerState lists, in the order of the names,
// but needs memory for one tensor of a sharded optimizer at a time: what visit
// gets is valid until it returns. It is collective like OptimizerState.
func (g *GradFusion) EachState(ctx context.Context, visit func(Named) error) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	tensors, err := g.stateTensors(ctx)
	if err != nil {
		return err
	}
	var room []float32
	for i := range tensors {
		t := &tensors[i]
		n := t.entry.param.Len()
		whole := t.part
		if g.sharded() {
			if len(room) < n {
				room = make([]float32, n)
			}
			whole = device.FromF32(room[:n])
			lo, _ := t.entry.own(t.stage.Comm.Rank())
			copy(room[lo:n], t.part.F32())
			call := collective.Call{Kind: plan.AllGather, In: whole, InBounds: t.entry.parts(t.stage.Comm.Size()), Label: "state of " + t.entry.param.Name}
			if err := t.stage.Comm.Start(ctx, call).Wait(ctx); err != nil {
				return g.stageNamed(t.stage, fmt.Errorf("gathering %s of %s: %w", t.name, t.entry.param.Name, err))
			}
		}
		if !g.firstCopy(t.entry.param) {
			continue
		}
		if err := visit(Named{t.title(), []int{n}, whole}); err != nil {
			return err
		}
	}
	return nil
}

// restoreParts loads whole tensors and keeps this rank's part of each.
func (g *GradFusion) restoreParts(ctx context.Context, load func(param, name string, to device.Buf) error) error {
	tensors, err := g.stateTensors(ctx)
	if err != nil {
		return err
	}
	var room []float32
	for _, t := range tensors {
		n := t.entry.param.Len()
		if len(room) < n {
			room = make([]float32, n)
		}
		if err := load(t.entry.param.Name, t.name, device.FromF32(room[:n])); err != nil {
			return err
		}
		lo, _ := t.entry.own(t.stage.Comm.Rank())
		copy(t.part.F32(), room[lo:n])
	}
	return nil
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
