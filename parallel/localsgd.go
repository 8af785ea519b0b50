package parallel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/optim"
)

// Local SGD (Stich 2019; Zhang et al. 2016) lets every rank train on its own
// samples and averages the parameters every so many steps; the steps between
// send nothing. What a rank computes in a step is the mean over its own samples.
//
//   - Parameters and the running statistics of BatchNorm are averaged, all ranks
//     counting alike. The optimizer's state stays each rank's own, but for
//     AverageState.
//   - Outcome is this rank's in a step between, without votes, which wait; all
//     ranks' in a step that ends with an average.
//   - A rank without samples in a step leaves its parameters as they are.

// localSGD is what that takes.
type localSGD struct {
	asked   bool   // the present step ends with an average whatever its number
	alone   layout // of steps between
	samples int    // of this rank in the present step
	empty   bool   // this rank has no samples in the present step
	merged  int    // the step after which the optimizer's state was averaged last
}

// checkLocal refuses what cannot be had together.
func (c FusionConfig) checkLocal(stages []Stage) error {
	if c.LocalSGD == 0 {
		return nil
	}
	for _, row := range []struct {
		with bool
		what string
	}{
		{c.LocalSGD < 0, "a negative number of steps"},
		{c.Deterministic, "Deterministic: ranks that train apart depend on how many they are"},
		{c.Shard, "Shard: ranks that train apart need all of the optimizer's state"},
		{c.Scaler != nil, "Scaler: the ranks agree on overflows in every step"},
		{c.Masters != device.F32, "Masters: an average of rounded numbers is not rounded"},
		{c.SyncBatchNorm != nil, "SyncBatchNorm, which sends something in every step"},
		{len(stages) > 1 || c.World != nil && c.World.Size() != stages[0].Comm.Size(), "a model that is cut over ranks"},
		{c.CheckEvery%max(c.LocalSGD, 1) != 0, fmt.Sprintf("CheckEvery = %d, which is no multiple of %d: ranks are equal after an average only", c.CheckEvery, c.LocalSGD)},
	} {
		if row.with {
			return errors.New("parallel: LocalSGD does not go with " + row.what)
		}
	}
	return nil
}

// Average makes the present step, whose Wait is to come, end with an average of
// the parameters, as every step that is a multiple of FusionConfig.LocalSGD does:
// for a step after which the model is evaluated or saved. All ranks call it for
// the same steps. Without LocalSGD it does nothing.
func (g *GradFusion) Average() { g.local.asked = true }

// averages reports whether the present step ends with an average.
func (g *GradFusion) averages() bool {
	return g.cfg.LocalSGD > 0 && (g.local.asked || (g.step+1)%g.cfg.LocalSGD == 0)
}

// scope is the ranks that take part in the outcome of the present step.
func (g *GradFusion) scope() *layout {
	if g.cfg.LocalSGD == 0 || g.averages() {
		return &g.layout
	}
	if g.local.alone.places == nil {
		g.local.alone = layout{world: g.layout.world, stages: g.layout.stages, from: g.layout.own,
			places: g.layout.places[g.layout.own : g.layout.own+1], losses: []int{0}, twins: []int{0}}
	}
	return &g.local.alone
}

// localMicros are the micro-batches [lo, hi) of a step, of which this rank takes
// the mean.
func (g *GradFusion) localMicros(samples, micro, lo, hi int) iter.Seq[Micro] {
	own := 0
	for i := lo; i < hi; i++ {
		from, to := data.MicroBounds(samples, micro, i)
		own += to - from
	}
	g.local.empty, g.local.samples = own == 0, own
	return func(yield func(Micro) bool) {
		for m := range MicroRange(samples, micro, lo, hi) {
			m.Total = own
			if !yield(m) {
				return
			}
		}
	}
}

// average starts the average that the step which has just been counted ends with,
// if it does; parameters arrive during the next forward pass, see Complete.
func (g *GradFusion) average(due bool) error {
	g.local.asked = false
	if _, columns := g.column(); !due || columns == 1 {
		return nil
	}
	s := g.stages[0]
	if err := s.averageStates(g.ctx); err != nil {
		return fmt.Errorf("averaging running statistics: %w", err)
	}
	s.reducer.spread(collective.Call{Kind: plan.AllReduce, Op: collective.Mean})
	g.changed() // also where this rank has updated nothing
	if g.cfg.NoOverlap {
		return g.Complete(g.ctx)
	}
	return nil
}

// AverageState makes the optimizer's state of all ranks their average, so that
// there is one to save, with which a run continues as it would have without a
// stop. It is collective, for after a step that ended with an average of the
// parameters; a second call after the same step and one without LocalSGD do
// nothing.
func (g *GradFusion) AverageState(ctx context.Context) error {
	if g.cfg.LocalSGD == 0 || g.local.merged == g.step {
		return nil
	}
	if err := g.ready(ctx); err != nil {
		return err
	}
	g.local.merged = g.step
	var works []*collective.Work
	err := g.opt.State(func(name string, s optim.Segment, t device.Buf) error {
		call := collective.Call{Kind: plan.AllReduce, Op: collective.Mean, In: t, Label: StateName(s.Param.Name, name)}
		works = append(works, g.stages[0].Comm.Start(ctx, call))
		return nil
	})
	for _, w := range works {
		err = cmp.Or(err, w.Wait(ctx)) // the first says it for all
	}
	if err != nil {
		return fmt.Errorf("averaging the optimizer's state: %w", err)
	}
	return nil
}

func (s *stage) averageStates(ctx context.Context) error {
	var works []*collective.Work
	for _, state := range s.states {
		call := collective.Call{Kind: plan.AllReduce, Op: collective.Mean, In: state.Buf, Label: state.Name}
		if state.Buf.Type != device.F32 && state.Buf.Type != device.F64 {
			call = collective.Call{Kind: plan.Broadcast, In: state.Buf, Label: state.Name}
		}
		works = append(works, s.Comm.Start(ctx, call))
	}
	for _, w := range works {
		if err := w.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// localReduction leaves a bucket with this rank's own gradients.
type localReduction struct{ done *collective.Work }

func (l localReduction) start(*bucket) *collective.Work { return l.done }

func (localReduction) close() {}
