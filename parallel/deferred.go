package parallel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/optim"
)

// With FusionConfig.Defer a step ends while sums are on their way, and the next
// forward pass goes on beside them (ByteScheduler, Peng et al. 2019; P3, Jayarajan
// et al. 2019). What Step would do for a bucket is done when its sum has come: at
// the first use of one of its parameters, or by whoever needs all of them. That is
// the same arithmetic in another order of the buckets, so no bit differs.
//
//   - Losses, votes, overflows and failures are agreed upon as always, before Step:
//     they need no sums. They go over the stage's Comm, the sums over a twin of it,
//     so that nothing which ranks do in between gets into the sums' way.
//   - A backward pass begins when all buckets have landed, for it writes to them.
//   - Buckets are sent in the order that SendOrder makes, once, of times that
//     rank 0 has measured; see timing.

// deferred is the update that the buckets of the last step wait for.
type deferred struct {
	step, updates int
	lr, scale     float32
	weight        float32 // see weigh; of the sums of ties too, which come after it
	skip          bool
	err           error // the first of a sum
	timing        timing
}

// Defers returns nil where FusionConfig.Defer can be had with everything else, or
// what it does not go with.
func Defers(c FusionConfig, stages []Stage, opt optim.Optimizer) error {
	_, partial := opt.(optim.Partial)
	sparse := false
	for _, s := range stages {
		for _, p := range trainable(nn.Params(s.Blocks)) {
			sparse = sparse || p.Sparse
		}
	}
	for _, row := range []struct {
		with bool
		what string
	}{
		{c.NoOverlap, "NoOverlap"},
		{len(stages) > 1 || c.World != nil, "a model that is cut over ranks"},
		{c.Shard, "Shard, whose parameters are what travels beside the forward pass"},
		{c.LocalSGD > 0, "LocalSGD, whose parameters are what travels beside the forward pass"},
		{c.ClipNorm > 0, "ClipNorm, which needs all sums before the first update"},
		{c.Hook != nil, "Hook, of whose failure all ranks learn before the first update"},
		{c.Wire.Format == PowerSGD, "powersgd, which has little to send"},
		{sparse, "sparse gradients"},
		{!partial, "an optimizer that is no optim.Partial: LARS, LAMB, and those from elsewhere"},
	} {
		if row.with {
			return errors.New("parallel: Defer does not go with " + row.what)
		}
	}
	return nil
}

func (c FusionConfig) checkDefer(stages []Stage, opt optim.Optimizer) error {
	if !c.Defer {
		return nil
	}
	return Defers(c, stages, opt)
}

// sumsApart gives the sums a Comm of their own. It is collective.
func (g *GradFusion) sumsApart(ctx context.Context) error {
	r := g.stages[0].reducer
	if !g.cfg.Defer || r.comm.Size() == 1 {
		return nil
	}
	r.ready = g.deferred.timing.ready
	twin, err := collective.Twin(ctx, r.comm)
	if err != nil {
		return fmt.Errorf("a Comm for the sums: %w", err)
	}
	r.comm = twin
	g.owned = append(g.owned, twin)
	return nil
}

// promise leaves the update of the step that has just been counted to the buckets'
// sums. While times are taken, they are waited for at once.
func (g *GradFusion) promise(lr float32) error {
	d, r := &g.deferred, g.stages[0].reducer
	d.step, d.updates, d.lr, d.scale, d.skip = g.step, g.updates(), lr, float32(1/g.lossScale()), g.skip
	for _, b := range r.buckets {
		b.owed = true
	}
	if !d.timing.probes() {
		return d.timing.next(g, nil)
	}
	return d.timing.next(g, g.landAll(g.ctx))
}

// land returns when a bucket has its sum and its parameters the values of the last
// Step.
func (g *GradFusion) land(ctx context.Context, b *bucket) error {
	d, r := &g.deferred, g.stages[0].reducer
	if !b.flying && !b.owed || d.err != nil {
		return d.err
	}
	if b.flying {
		if err := g.landEnded(ctx, b); err != nil {
			return err
		}
		start := g.cfg.Events.Now()
		if err := b.work.Wait(ctx); err != nil {
			return g.lost(ctx, b, err)
		}
		b.flying = false
		g.cfg.Events.Record(observe.Span{Kind: observe.Exposed, Lane: "compute", Name: "wait for a bucket", Start: start, End: g.cfg.Events.Now(), Step: g.step})
		r.landed(b)
		if d.weight != 1 {
			g.cfg.Device.Kernels().Scale(b.grad, b.grad, d.weight)
		}
	}
	if !b.owed {
		return nil
	}
	b.owed = false
	if d.skip {
		return nil
	}
	start := g.cfg.Events.Now()
	defer func() {
		g.cfg.Events.Record(observe.Span{Kind: observe.Optimizer, Lane: "compute", Name: "update", Start: start, End: g.cfg.Events.Now(), Step: d.step})
	}()
	return g.updateBucket(b)
}

// landEnded lands what has come before b has, which is waited for: there is time.
func (g *GradFusion) landEnded(ctx context.Context, b *bucket) error {
	for _, other := range g.stages[0].reducer.buckets {
		if b.work.Ended() {
			return nil
		}
		if other != b && other.flying && other.work.Ended() {
			if err := g.land(ctx, other); err != nil {
				return err
			}
		}
	}
	return nil
}

// lost notes that a sum will not come, which whoever needs it learns; a wait that
// only its own ctx has ended can be repeated.
func (g *GradFusion) lost(ctx context.Context, b *bucket, err error) error {
	if ctx.Err() != nil && g.ctx.Err() == nil {
		return err
	}
	g.deferred.err = &LateError{Step: max(g.deferred.step, 1), Bucket: b.label, Err: err}
	return g.deferred.err
}

// LateError is what a use of a parameter, Wait or Complete return when a sum of an
// earlier step, which went on beside the next one, has failed.
type LateError struct {
	Step   int    // of the sum
	Bucket string // and its parameters
	Err    error
}

func (e *LateError) Error() string {
	text := fmt.Sprintf("the sums of step %d, which went on beside the next step: ", e.Step)
	if peer := (*collective.PeerError)(nil); !errors.As(e.Err, &peer) || peer.Label != e.Bucket {
		text += e.Bucket + ": "
	}
	return text + e.Err.Error()
}

func (e *LateError) Unwrap() error { return e.Err }

// updateBucket is update for one bucket. A parameter that was frozen since the
// step counts as it was then.
func (g *GradFusion) updateBucket(b *bucket) error {
	d := &g.deferred
	for _, e := range b.entries {
		e.param.Frozen, e.frozen = e.frozen, e.param.Frozen
	}
	defer func() {
		for _, e := range b.entries {
			e.param.Frozen, e.frozen = e.frozen, e.param.Frozen
			e.param.Changed()
		}
	}()
	lo, hi := b.segments[0], b.segments[1]
	if err := g.opt.(optim.Partial).UpdateSome(d.updates, g.segments, lo, hi, d.lr, d.scale); err != nil {
		return fmt.Errorf("step %d: %w", d.step, err)
	}
	for _, s := range g.segments[lo:hi] {
		if err := g.roundMasters(s.Value()); err != nil {
			return fmt.Errorf("step %d: %w", d.step, err)
		}
	}
	return nil
}

// landAll is land for all buckets, in the order in which they were sent.
func (g *GradFusion) landAll(ctx context.Context) error {
	if !g.cfg.Defer {
		return nil
	}
	r := g.stages[0].reducer
	for _, k := range r.sequence {
		if err := g.land(ctx, r.buckets[k]); err != nil {
			return err
		}
	}
	return nil
}

// settle lets the sums end that other ranks may wait for, and what they read.
func (g *GradFusion) settle() {
	if g.stages == nil || g.ctx.Err() != nil {
		return
	}
	if g.cfg.Defer {
		_ = g.landAll(g.ctx) // whoever closes asks for nothing more
	}
	for _, s := range g.stages {
		_ = s.reducer.given(g.ctx)
	}
}

// open lets a step write to the buckets, which Micros could not.
func (g *GradFusion) open(ctx context.Context) error {
	if !g.cfg.Defer {
		return nil
	}
	r := g.stages[0].reducer
	if r.opened { // what flies is of the present step
		return nil
	}
	if err := g.landAll(ctx); err != nil {
		return err
	}
	r.opened, r.held = true, g.deferred.timing.alone()
	r.begin()
	return nil
}

// awaitUses makes uses of parameters wait for their buckets, and finds what of the
// segments a bucket has.
func (g *GradFusion) awaitUses() {
	r := g.stages[0].reducer
	for _, b := range r.buckets {
		for _, e := range b.entries {
			e.param.Before(func() error {
				if p := g.stages[0].phase; p == local || p == armed {
					return nil // a block is computed again: what flies is of the present step
				}
				g.deferred.timing.used(b)
				return g.land(g.ctx, b)
			})
		}
		in := func(s optim.Segment) bool { return r.entries[s.Param].bucket == b }
		b.segments[0] = slices.IndexFunc(g.segments, in)
		b.segments[1] = b.segments[0]
		for b.segments[1] < len(g.segments) && in(g.segments[b.segments[1]]) {
			b.segments[1]++
		}
	}
}
