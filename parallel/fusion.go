package parallel

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/optim"
)

// ErrNotSynchronised is what Step returns when every micro-batch of the step ran
// inside NoSync, so that the ranks would diverge.
var ErrNotSynchronised = errors.New("the gradients of this step were never summed over the ranks: run the last micro-batch outside NoSync, then Wait")

// ErrNoSamples is what Wait returns when there is nothing to wait for.
var ErrNoSamples = errors.New("a step of no samples: Micros begins a step, of at least one sample over all ranks")

// GradFusion fuses gradients into buckets, sums them over the ranks during the
// backward pass, merges BatchNorm statistics and updates the parameters. There
// is one on every rank, over all stages that the rank holds, and all ranks make
// the same calls in the same order. It is used by one goroutine.
//
// Losses are seeded with 1/targets of the whole step (samples, or tokens), so the
// summed gradient is the mean over them whatever ranks and micro-batches it has,
// and nothing is divided after a rounding; with a Scaler they are multiplied by
// its scale.
type GradFusion struct {
	cfg    FusionConfig
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	stages   []*stage // in ascending order
	owned    []collective.Comm
	ties     []*tie
	layout   layout
	opt      optim.Optimizer
	segments []optim.Segment // of all stages
	stageOf  []int           // of each segment
	norm     *globalNorm
	local    localSGD
	norms    *normGroup // nil without SyncBatchNorm

	step    int // completed steps
	noSync  bool
	votes   uint32
	failed  error  // why this rank cannot complete the present step
	agreed  uint64 // what any rank found out about the present step's gradients
	leaves  leaves
	outcome Outcome
	scaling
	deferred    deferred                                      // with Defer
	restore     func(param, name string, to device.Buf) error // until the buckets are cut
	restoreKept func(name string) ([]float32, error)          // likewise
}

// NewGradFusion is collective over the stages' Comms and the world: the ranks
// tell what they hold; those of a stage compare its structure and, unless
// parameters and buffers are equal already, take the first one's and verify that
// all are equal afterwards; copies of a tied parameter take the first stage's
// values. The blocks' parameters must have memory. ctx bounds the life of the
// GradFusion's calls.
func NewGradFusion(ctx context.Context, stages []Stage, opt optim.Optimizer, cfg FusionConfig) (*GradFusion, error) {
	if err := checkStages(stages); err != nil {
		return nil, err
	}
	if cfg.Device == nil {
		return nil, errors.New("parallel: FusionConfig.Device is missing")
	}
	if cfg.Deterministic && cfg.SyncBatchNorm != nil {
		return nil, errors.New("parallel: SyncBatchNorm does not go with Deterministic, where the statistics belong to the micro-batch, whoever computes it")
	}
	for _, s := range stages {
		if err := checkTables(s, cfg); err != nil {
			return nil, err
		}
	}
	for _, err := range []error{cfg.checkLocal(stages), cfg.checkHook(), cfg.Wire.check(cfg), cfg.checkDefer(stages, opt)} {
		if err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	g := &GradFusion{cfg: cfg, ctx: ctx, cancel: cancel, opt: opt}
	stages, err := g.separate(ctx, stages)
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	for _, s := range stages {
		g.stages = append(g.stages, newStage(ctx, s, cfg))
	}
	g.ties = newTies(g.stages)
	if err := g.sumsApart(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if err := g.start(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// start agrees with the other ranks.
func (g *GradFusion) start(ctx context.Context) (err error) {
	if g.layout, err = newLayout(ctx, g.cfg.World, g.stages); err != nil {
		return err
	}
	g.leaves.width = g.layout.width()
	for _, s := range g.stages {
		if err := g.synchronise(ctx, s); err != nil {
			return g.stageNamed(s, err)
		}
	}
	for _, t := range g.ties {
		if err := t.synchronise(ctx); err != nil {
			return err
		}
	}
	g.startNorms()
	for _, s := range g.stages {
		for _, p := range s.params {
			if err := g.roundMasters(p.Value); err != nil {
				return err
			}
		}
	}
	g.changed()
	return nil
}

// Micros begins a step of that many samples (all ranks' together) and lists this
// rank's run of micro-batches, which may be empty. The ranks of a column have
// the same run.
func (g *GradFusion) Micros(samples, micro int) iter.Seq[Micro] {
	count := data.Micros(samples, micro)
	column, columns := g.column()
	lo, hi := data.Run(count, columns, column)
	g.leaves.begin(lo, hi, count)
	g.leaves.samples = samples
	g.failed = g.unfrozen()
	g.deferred.timing.begin()
	for _, s := range g.stages {
		s.reducer.step, s.reducer.lossScale = g.step+1, g.lossScale()
		s.begin(lo, hi, count)
	}
	if g.cfg.LocalSGD > 0 {
		return g.localMicros(samples, micro, lo, hi)
	}
	return MicroRange(samples, micro, lo, hi)
}

// Backward runs the backward pass of a micro-batch whose loss is on t, of a
// model that is not cut; Executor runs the others. On the last one, unless inside
// NoSync, buckets are released to be summed as they fill. The first one of all
// cuts the buckets, which is collective. After an error this rank cannot complete
// the step: Fail tells the others.
func (g *GradFusion) Backward(t *nn.Tape, loss *nn.Var, m Micro) error {
	if g.layout.stages > 1 {
		return errors.New("parallel: Backward of a model in several stages: use an Executor")
	}
	if err := g.seedLoss(t, loss, m); err != nil {
		return err
	}
	return g.backward(g.stages[0], t, m, m.Last && !g.noSync, (*nn.Tape).Backward)
}

// seedLoss starts the backward pass of a micro-batch at its loss.
func (g *GradFusion) seedLoss(t *nn.Tape, loss *nn.Var, m Micro) (err error) {
	defer nn.Catch(&err)
	t.SeedLoss(loss, float32(g.lossScale()/(float64(m.Total)*float64(max(g.cfg.Targets, 1)))))
	g.leaves.scored(m, loss.Score())
	return nil
}

// backward computes a stage's parameter gradients by run, a method of the tape.
func (g *GradFusion) backward(s *stage, t *nn.Tape, m Micro, arm bool, run func(*nn.Tape)) (err error) {
	defer nn.Catch(&err)
	if s.phase >= armed {
		return errors.New("parallel: a micro-batch after the one that synchronised: begin the next step with Micros")
	}
	if g.layout.stages == 1 && !g.follow(m) {
		return nil // Wait tells all ranks
	}
	if err := g.cut(s, t.Uses()); err != nil {
		return err
	}
	if err := g.open(g.ctx); err != nil {
		return err
	}
	s.phase = local
	if arm {
		s.phase = armed
	}
	g.deferred.timing.backward(arm)
	s.reducer.beginLeaf(arm)
	run(t)
	return s.reducer.finishLeaves(m.Index)
}

// inStep says in which step an error happened, unless it does so itself.
func (g *GradFusion) inStep(err error) error {
	if err == nil || saysStep(err) {
		return err
	}
	return fmt.Errorf("step %d: %w", g.step+1, err)
}

func saysStep(err error) bool {
	var rank *RankError
	var loss *LossError
	return errors.As(err, &rank) || errors.As(err, &loss)
}

// NoSync runs f, in which Backward adds to the gradients and sends nothing.
func (g *GradFusion) NoSync(f func() error) error {
	g.noSync = true
	defer func() { g.noSync = false }()
	return f()
}

// Wait returns when the gradients of the whole step are summed (with
// FusionConfig.Defer on their way), the running statistics merged and the outcome known. A rank without micro-batches
// contributes nothing here. When a rank has left out a micro-batch, did not
// synchronise or called Fail, all ranks return the same *RankError; when a loss is
// no finite number, the same *LossError.
func (g *GradFusion) Wait(ctx context.Context) error { return g.inStep(g.wait(ctx)) }

// wait is Wait, but its errors need not say the step.
func (g *GradFusion) wait(ctx context.Context) error {
	if g.leaves.count == 0 {
		return ErrNoSamples
	}
	if g.phase() == reduced {
		return ErrNotSynchronised
	}
	if err := g.left(); err != nil && g.failed == nil {
		g.failed = err
	}
	if g.failed != nil && (g.layout.stages > 1 || g.cfg.LocalSGD > 0) {
		return g.failed
	}
	start := g.cfg.Events.Now()
	if err := g.finish(ctx); err != nil {
		return err
	}
	g.cfg.Events.Record(observe.Span{Kind: observe.Exposed, Lane: "compute", Name: "wait for buckets", Start: start, End: g.cfg.Events.Now(), Step: g.step + 1})
	for _, s := range g.stages {
		s.phase = reduced
	}
	return nil
}

// Outcome returns what the last Wait and Step found out.
func (g *GradFusion) Outcome() Outcome { return g.outcome }

// Close ends the GradFusion's goroutines; calls in flight fail. It first waits until
// what other ranks may need of the last step has left: gradients of tied parameters,
// parameters in shared memory and, with FusionConfig.Defer, sums.
func (g *GradFusion) Close() error {
	g.settle()
	for _, t := range g.ties {
		t.deliver(g.ctx)
	}
	g.cancel()
	for _, s := range g.stages {
		s.reducer.reduction.close()
	}
	if g.norms != nil {
		g.norms.detach(g.stages)
	}
	return g.closeOwned()
}
