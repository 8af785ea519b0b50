package parallel

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/optim"
)

// Step updates the parameters with learning rate lr, after clipping. It is the
// same computation on every rank that holds the same parameters. After a step
// that overflowed it changes nothing but the loss scale; an error that wraps
// amp.ErrOverflow means that a smaller one cannot help.
func (g *GradFusion) Step(lr float32) error {
	if g.phase() != reduced {
		return ErrNotSynchronised
	}
	if err := g.startOptimizer(); err != nil {
		return fmt.Errorf("step %d: %w", g.step+1, err)
	}
	start := g.cfg.Events.Now()
	due := g.averages()
	g.step++
	if !g.skip && !g.local.empty && !g.cfg.Defer {
		if err := g.update(lr); err != nil {
			return fmt.Errorf("step %d: %w", g.step, err)
		}
	}
	var promised error
	if g.cfg.Defer {
		promised = g.promise(lr)
	}
	if err := g.scaled(); err != nil {
		return fmt.Errorf("step %d: %w", g.step, err)
	}
	g.cfg.Events.Record(observe.Span{Kind: observe.Optimizer, Lane: "compute", Name: "update", Start: start, End: g.cfg.Events.Now(), Step: g.step})
	for _, s := range g.stages {
		s.phase = idle
	}
	if err := errors.Join(promised, g.spread(), g.average(due)); err != nil {
		return fmt.Errorf("step %d: %w", g.step, err)
	}
	if n := g.cfg.CheckEvery; n > 0 && g.step%n == 0 {
		return g.verify(g.ctx)
	}
	return nil
}

// update runs the optimizer.
func (g *GradFusion) update(lr float32) error {
	scale := float32(1 / g.lossScale())
	if g.cfg.ClipNorm > 0 {
		norm, err := g.norm.compute(g.ctx, g.segments)
		if err != nil {
			return fmt.Errorf("norm of the gradients: %w", err)
		}
		norm /= g.lossScale()
		g.outcome.GradNorm, scale = norm, scale*optim.ClipScale(norm, g.cfg.ClipNorm)
	}
	if err := g.norm.layered(g.ctx, g.opt, g.updates(), g.segments, scale); err != nil {
		return fmt.Errorf("norms of the parameters: %w", err)
	}
	g.noteRows()
	if err := g.opt.Update(g.updates(), g.segments, lr, scale); err != nil {
		return err
	}
	for _, s := range g.segments {
		if err := g.roundMasters(s.Value()); err != nil {
			return err
		}
	}
	g.changed()
	return nil
}

// cut places the parameters of a stage in buckets, once; uses is what the
// stage's first forward pass used. When all stages are cut it lists the
// optimizer's segments in the order of their places.
func (g *GradFusion) cut(s *stage, uses []nn.Use) error {
	if s.reducer.buckets != nil {
		return nil
	}
	if err := s.reducer.cut(g.ctx, uses); err != nil {
		return g.stageNamed(s, err)
	}
	if err := g.remember(s); err != nil {
		return g.stageNamed(s, err)
	}
	all := !slices.ContainsFunc(g.stages, func(s *stage) bool { return s.reducer.buckets == nil })
	if all {
		g.restoreKept = nil // which may hold a checkpoint
	}
	g.segments, g.stageOf = g.segments[:0], g.stageOf[:0]
	for _, s := range g.stages {
		for _, b := range s.reducer.buckets {
			for _, e := range b.entries {
				if segment, ok := s.reducer.segment(e); ok {
					g.segments = append(g.segments, segment)
					g.stageOf = append(g.stageOf, s.Index)
				}
			}
		}
	}
	if g.cfg.Defer {
		g.awaitUses()
	}
	if all && g.layout.world.Size() == 1 {
		return g.startOptimizer() // whose memory the device can prepare during the backward pass
	}
	return nil
}

// cutAll cuts what no backward pass has cut, and agrees on the places of tied
// parameters. Backward passes meet a rank's stages from the last to the first.
func (g *GradFusion) cutAll() error {
	for _, s := range slices.Backward(g.stages) {
		if err := g.cut(s, nil); err != nil {
			return err
		}
	}
	for _, t := range g.ties {
		if t.all.IsZero() {
			if err := t.arrange(g.ctx, g.cfg.Device); err != nil {
				return err
			}
		}
	}
	return nil
}

// startOptimizer gives the optimizer its memory, once, and what a Restore left
// for it; it is collective. Where there are other ranks that waits for the first
// update, because until the first backward pass is over its tape holds the memory in
// which parameters were before they moved to the buckets, where they do. That is
// garbage now, as large as the model, and the collector might leave it for as long
// as the training goes.
func (g *GradFusion) startOptimizer() error {
	if g.norm != nil {
		return nil
	}
	bytes := 0
	for _, s := range g.stages {
		bytes += s.reducer.moved()
	}
	if bytes >= garbageWorthCollecting {
		runtime.GC()
	}
	if err := g.opt.Init(g.cfg.Device, g.segments); err != nil {
		return err
	}
	norm, err := newGlobalNorm(g.ctx, g.cfg.Device, g.layout, g.segments, g.stageOf, g.whole())
	if err != nil {
		return err
	}
	g.norm = norm
	return g.restorePending()
}

// sharded reports whether other ranks have a part of the optimizer's state.
func (g *GradFusion) sharded() bool {
	_, columns := g.column()
	return g.cfg.Shard && columns > 1
}

// whole reports whether this rank updates whole parameters.
func (g *GradFusion) whole() bool {
	for _, s := range g.stages {
		for _, p := range s.reducer.params {
			if p.Part != nil {
				return false
			}
		}
	}
	return !g.sharded()
}

// garbageWorthCollecting is a size that is seen in a process's memory.
const garbageWorthCollecting = 16 << 20
