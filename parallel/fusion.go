package parallel

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/optim"
)

// FusionConfig are the settings of a GradFusion; the zero value of each field
// but Device is usable.
type FusionConfig struct {
	Device        device.Device // holds masters and optimizer state; required
	ThresholdMB   float64       // a bucket is closed at this size in 2^20 bytes; 0 means 16
	FirstMB       float64       // size of the first bucket, so that communication starts early; 0 means 1
	NoOverlap     bool          // start all calls after the backward pass
	Deterministic bool          // sums over the canonical tree: equal bits for any layout
	FindUnused    bool          // parameters without a gradient count as zero instead of an error
	Targets       int           // of a sample, which the loss is the mean over as well: the tokens of a window; 0 means 1
	ClipNorm      float64       // largest global norm of the gradients; 0 means no clipping
	CheckEvery    int           // compare parameters over ranks every so many steps; 0 means at the start only
	Events        *observe.Recorder
}

func (c FusionConfig) thresholdBytes() int { return megabytes(c.ThresholdMB, 16) }
func (c FusionConfig) firstBytes() int     { return megabytes(c.FirstMB, 1) }

func megabytes(mb, otherwise float64) int {
	if mb <= 0 {
		mb = otherwise
	}
	return max(int(mb*(1<<20)), 1)
}

// Stage is the part of a model that a rank holds: a slice of its blocks, and
// the ranks that hold the same part.
type Stage struct {
	Blocks []nn.Block
	Comm   collective.Comm
}

// ErrNotSynchronised is what Step returns when every micro-batch of the step ran
// inside NoSync, so that the ranks would diverge.
var ErrNotSynchronised = errors.New("the gradients of this step were never summed over the ranks: run the last micro-batch outside NoSync, then Wait")

// ErrNoSamples is what Wait returns when there is nothing to wait for.
var ErrNoSamples = errors.New("a step of no samples: Micros begins a step, of at least one sample over all ranks")

// GradFusion fuses gradients into buckets, sums them over the ranks during the
// backward pass, merges BatchNorm statistics and updates the parameters. There
// is one on every rank, and all ranks make the same calls in the same order. It
// is used by one goroutine.
//
// Losses are seeded with 1/targets of the whole step (samples, or tokens), so the
// summed gradient is the mean over them whatever ranks and micro-batches it has,
// and nothing is divided after a rounding.
type GradFusion struct {
	cfg    FusionConfig
	comm   collective.Comm
	cancel context.CancelFunc

	reducer  *reducer
	states   []nn.State
	running  []*nn.Running
	opt      optim.Optimizer
	segments []optim.Segment
	norm     *optim.Norm

	step    int // completed steps
	noSync  bool
	votes   uint32
	phase   phase
	leaves  leaves
	outcome Outcome
	restore func(param, name string, to device.Buf) error // until the buckets are cut
}

// phase is how far the present step has come.
type phase uint8

const (
	idle    phase = iota // no micro-batch yet
	local                // micro-batches ran, none armed
	armed                // the last micro-batch ran
	reduced              // Wait has returned
)

// NewGradFusion is collective over the stage's Comm: the ranks compare the
// model's structure and, unless parameters and buffers are equal already, take
// rank 0's and verify that all are equal afterwards. The blocks' parameters must
// have memory. ctx bounds the life of the GradFusion's calls.
func NewGradFusion(ctx context.Context, stages []Stage, opt optim.Optimizer, cfg FusionConfig) (*GradFusion, error) {
	if len(stages) != 1 {
		return nil, fmt.Errorf("%d stages on one rank: this version has data parallelism only, which is one stage", len(stages))
	}
	if cfg.Device == nil {
		return nil, errors.New("parallel: FusionConfig.Device is missing")
	}
	ctx, cancel := context.WithCancel(ctx)
	g := &GradFusion{cfg: cfg, comm: stages[0].Comm, cancel: cancel, opt: opt}
	g.states = nn.States(stages[0].Blocks)
	for _, s := range g.states {
		if s.Running != nil && (len(g.running) == 0 || g.running[len(g.running)-1] != s.Running) {
			g.running = append(g.running, s.Running)
		}
	}
	g.reducer = &reducer{ctx: ctx, cfg: cfg, comm: g.comm}
	for _, p := range nn.Params(stages[0].Blocks) {
		if !p.Frozen {
			g.reducer.params = append(g.reducer.params, p)
		}
	}
	if err := g.synchronise(ctx, nn.Params(stages[0].Blocks)); err != nil {
		cancel()
		return nil, err
	}
	if cfg.Deterministic {
		g.reducer.canonical = newCanonicalReducer(ctx)
	}
	return g, nil
}

// Micros begins a step of that many samples (all ranks' together) and lists this
// rank's run of micro-batches, which may be empty.
func (g *GradFusion) Micros(samples, micro int) iter.Seq[Micro] {
	count := data.Micros(samples, micro)
	lo, hi := data.Run(count, g.comm.Size(), g.comm.Rank())
	g.reducer.lo, g.reducer.hi, g.reducer.count = lo, hi, count
	g.phase = idle
	g.leaves.begin(lo, hi, count)
	if g.reducer.buckets != nil {
		g.reducer.begin()
	}
	return microRange(samples, micro, lo, hi)
}

// Backward runs the backward pass of a micro-batch whose loss is on t. On the
// last one, unless inside NoSync, buckets are released to be summed as they
// fill. The first one of all cuts the buckets, which is collective.
func (g *GradFusion) Backward(t *nn.Tape, loss *nn.Var, m Micro) error {
	return g.backward(t, loss, m, m.Last && !g.noSync)
}

func (g *GradFusion) backward(t *nn.Tape, loss *nn.Var, m Micro, arm bool) (err error) {
	defer nn.Catch(&err)
	if g.phase >= armed {
		return errors.New("parallel: a micro-batch after the one that synchronised: begin the next step with Micros")
	}
	if err := g.cut(t.Uses()); err != nil {
		return err
	}
	g.phase = local
	if arm {
		g.phase = armed
	}
	g.reducer.beginLeaf(arm)
	t.SeedLoss(loss, float32(1/(float64(m.Total)*float64(max(g.cfg.Targets, 1)))))
	t.Backward()
	g.leaves.add(m, loss.Score(), g.running)
	return g.reducer.finishLeaves(m.Index)
}

// NoSync runs f, in which Backward adds to the gradients and sends nothing.
func (g *GradFusion) NoSync(f func() error) error {
	g.noSync = true
	defer func() { g.noSync = false }()
	return f()
}

// Wait returns when the gradients of the whole step are summed, the running
// statistics merged and the outcome known. A rank without micro-batches
// contributes nothing here.
func (g *GradFusion) Wait(ctx context.Context) error {
	if g.reducer.count == 0 {
		return ErrNoSamples
	}
	empty := g.reducer.lo == g.reducer.hi
	if g.phase != armed && !(empty && g.phase == idle) {
		return ErrNotSynchronised
	}
	if err := g.cut(nil); err != nil {
		return err
	}
	g.reducer.releaseAll(empty)
	start := g.cfg.Events.Now()
	if err := g.reducer.wait(ctx); err != nil {
		return fmt.Errorf("step %d: %w", g.step+1, err)
	}
	if err := g.mergeLeaves(ctx); err != nil {
		return fmt.Errorf("step %d: %w", g.step+1, err)
	}
	g.cfg.Events.Record(observe.Span{Kind: observe.Exposed, Lane: "compute", Name: "wait for buckets", Start: start, End: g.cfg.Events.Now(), Step: g.step + 1})
	g.phase = reduced
	return nil
}

// Step updates the parameters with learning rate lr, after clipping. It is the
// same computation on every rank.
func (g *GradFusion) Step(lr float32) error {
	if g.phase != reduced {
		return ErrNotSynchronised
	}
	if err := g.startOptimizer(); err != nil {
		return fmt.Errorf("step %d: %w", g.step+1, err)
	}
	start := g.cfg.Events.Now()
	scale := float32(1)
	if g.cfg.ClipNorm > 0 {
		norm, err := g.norm.Global(g.segments)
		if err != nil {
			return fmt.Errorf("step %d: norm of the gradients: %w", g.step+1, err)
		}
		g.outcome.GradNorm, scale = norm, optim.ClipScale(norm, g.cfg.ClipNorm)
	}
	g.step++
	if err := g.opt.Update(g.step, g.segments, lr, scale); err != nil {
		return fmt.Errorf("step %d: %w", g.step, err)
	}
	g.cfg.Events.Record(observe.Span{Kind: observe.Optimizer, Lane: "compute", Name: "update", Start: start, End: g.cfg.Events.Now(), Step: g.step})
	g.phase = idle
	if n := g.cfg.CheckEvery; n > 0 && g.step%n == 0 {
		return g.verify(g.reducer.ctx)
	}
	return nil
}

// Outcome returns what the last Wait and Step found out.
func (g *GradFusion) Outcome() Outcome { return g.outcome }

// Close ends the GradFusion's goroutines; calls in flight fail.
func (g *GradFusion) Close() error {
	g.cancel()
	if g.reducer.canonical != nil {
		g.reducer.canonical.close()
	}
	return nil
}

// cut places the parameters in buckets, once, and lists the optimizer's segments
// in the order of their places.
func (g *GradFusion) cut(uses []nn.Use) error {
	if g.reducer.buckets != nil {
		return nil
	}
	if err := g.reducer.cut(g.reducer.ctx, uses); err != nil {
		return err
	}
	g.segments = g.segments[:0]
	for _, b := range g.reducer.buckets {
		for _, e := range b.entries {
			grad := b.grad.Slice(e.offset, e.offset+e.param.Len())
			g.segments = append(g.segments, optim.Segment{Param: e.param, Hi: e.param.Len(), Grad: grad})
		}
	}
	return nil
}

// startOptimizer gives the optimizer its memory, once, and what a Restore left
// for it. That waits for the first update, because until the first backward pass
// is over its tape holds the memory in which the parameters were before they
// moved to the buckets. That is garbage now, as large as the model, and the
// collector might leave it for as long as the training goes.
func (g *GradFusion) startOptimizer() error {
	if g.norm != nil {
		return nil
	}
	if g.reducer.bytes() >= garbageWorthCollecting {
		runtime.GC()
	}
	if err := g.opt.Init(g.cfg.Device, g.segments); err != nil {
		return err
	}
	norm, err := optim.NewNorm(g.cfg.Device, g.segments)
	if err != nil {
		return err
	}
	g.norm = norm
	return g.restorePending()
}

// garbageWorthCollecting is a size that is seen in a process's memory.
const garbageWorthCollecting = 16 << 20
