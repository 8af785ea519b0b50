package parallel

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// What a lossy wire has not sent yet belongs to the state of a training. Each rank
// has its own; by name it is a matrix with a row for each rank of the stage. Other
// numbers of ranks, or other buckets, can go on with it: what counts is that
// everything owed is owed by somebody.

// keptTensor is what this rank keeps of a parameter.
type keptTensor struct {
	stage  *stage
	entry  *entry
	name   string
	values []float32
	same   bool // all ranks have the same
}

func (t *keptTensor) title() string {
	name := StateName(t.entry.param.Name, t.name)
	if t.entry.tied {
		name += fmt.Sprintf("/stage %d", t.stage.Index) // which has its own gradient
	}
	return name
}

// Keeps reports whether this rank has state that EachKept lists: that of a lossy
// wire which sends later what it has not sent.
func (g *GradFusion) Keeps() bool {
	_, columns := g.column()
	return g.cfg.Wire.keeps() && (columns > 1 || g.cfg.Wire.Momentum > 0)
}

// keptTensors lists what this rank keeps of stages, in the order of the names.
func (g *GradFusion) keptTensors(stages ...*stage) (out []keptTensor) {
	for _, s := range stages {
		for _, b := range s.reducer.buckets {
			if b.feedback == nil {
				continue
			}
			b.feedback.rescale(g.lossScale())
			for _, e := range b.entries {
				out = append(out, b.feedback.tensors(s, e)...)
			}
		}
	}
	slices.SortFunc(out, func(a, b keptTensor) int { return strings.Compare(a.title(), b.title()) })
	return out
}

// tensors lists what is kept of a parameter.
func (f *feedback) tensors(s *stage, e *entry) (out []keptTensor) {
	lo, hi := e.offset, e.offset+e.param.Len()
	if f.lowRank != nil {
		m := f.lowRank.matrix(e)
		if m == nil {
			return nil
		}
		out = append(out, keptTensor{stage: s, entry: e, name: "factor", values: m.factor, same: true})
	}
	out = append(out, keptTensor{stage: s, entry: e, name: "kept", values: f.kept[lo:hi]})
	if f.velocity != nil {
		out = append(out, keptTensor{stage: s, entry: e, name: "velocity", values: f.velocity[lo:hi]})
	}
	return out
}

// EachKept calls visit on the first rank of each stage for what its ranks keep: a
// row of each rank, in memory that is valid until visit returns. It is collective
// over the stages' Comms, after the first step.
func (g *GradFusion) EachKept(ctx context.Context, visit func(Named) error) error {
	if err := g.landAll(ctx); err != nil {
		return err
	}
	for _, t := range g.keptTensors(g.stages...) {
		comm, n := t.stage.Comm, len(t.values)
		if t.same {
			if comm.Rank() == 0 {
				if err := visit(Named{t.title(), []int{n}, device.FromF32(t.values)}); err != nil {
					return err
				}
			}
			continue
		}
		c := collective.Call{Kind: plan.Gather, In: device.FromF32(t.values), Label: t.title()}
		if comm.Rank() == 0 {
			c.Out = device.FromF32(make([]float32, comm.Size()*n))
		}
		if err := comm.Start(ctx, c).Wait(ctx); err != nil {
			return fmt.Errorf("gathering %s: %w", t.title(), err)
		}
		if comm.Rank() == 0 {
			if err := visit(Named{t.title(), []int{comm.Size(), n}, c.Out}); err != nil {
				return err
			}
		}
	}
	return nil
}

// KeptLayout lists what EachKept visits on this rank, without the values: Buf has
// a type only. With Defer it is for after Complete.
func (g *GradFusion) KeptLayout() (out []Named) {
	for _, t := range g.keptTensors(g.stages...) {
		shape := []int{t.stage.Comm.Size(), len(t.values)}
		if t.same {
			shape = shape[1:]
		}
		if t.stage.Comm.Rank() == 0 {
			out = append(out, Named{t.title(), shape, device.Buf{Type: device.F32}})
		}
	}
	return out
}

// KeptDigests returns the SHA-256 of what each rank of the world keeps. It is
// collective over the world.
func (g *GradFusion) KeptDigests(ctx context.Context) (Named, error) {
	if err := g.landAll(ctx); err != nil {
		return Named{}, err
	}
	h := NewHasher()
	for _, t := range g.keptTensors(g.stages...) {
		h.Add(Named{t.title(), []int{len(t.values)}, device.FromF32(t.values)})
	}
	world := g.layout.world
	all := device.FromU8(make([]byte, sha256.Size*world.Size()))
	call := collective.Call{Kind: plan.AllGather, In: device.FromU8(h.sum.Sum(nil)), Out: all, Label: "digests of what is kept"}
	if err := world.Start(ctx, call).Wait(ctx); err != nil {
		return Named{}, fmt.Errorf("comparing what is kept: %w", err)
	}
	return Named{"digests", []int{world.Size(), sha256.Size}, all}, nil
}

// RestoreKept continues with what EachKept listed. load returns a tensor by its
// name, or nothing where there was none; it is called in one order on all ranks,
// when the buckets are cut, which the first step does.
func (g *GradFusion) RestoreKept(load func(name string) ([]float32, error)) {
	g.restoreKept = load
}

// remember makes what the ranks keep of a stage, whose buckets have been cut, and
// fills it from a checkpoint.
func (g *GradFusion) remember(s *stage) error {
	if !g.Keeps() && (g.restoreKept == nil || !g.cfg.Wire.keeps()) {
		return nil
	}
	for _, b := range s.reducer.buckets {
		s.reducer.remember(b)
		b.feedback.scale, b.feedback.restored = g.lossScale(), g.restoreKept != nil
	}
	if g.restoreKept == nil {
		return nil
	}
	for _, t := range g.keptTensors(s) {
		from, err := g.restoreKept(t.title())
		if err != nil {
			return err
		}
		n, ranks, rank := len(t.values), s.Comm.Size(), s.Comm.Rank()
		switch {
		case n == 0 || len(from)%n != 0 || t.same && len(from) > n:
			return fmt.Errorf("restoring %s: %d numbers for a parameter of %d", t.title(), len(from), n)
		case t.same:
			copy(t.values, from)
			continue
		}
		for row := rank; (row+1)*n <= len(from); row += ranks {
			addInto(device.FromF32(t.values), device.FromF32(from[row*n:(row+1)*n]))
		}
	}
	return nil
}
