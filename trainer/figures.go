package trainer

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/observe/tensorboard"
	"github.com/gradfusion/gradfusion/parallel"
)

// warmup is how many steps at the start count for no mean: the first ones grow
// arenas and fault pages in.
const warmup = 3

// figures collects what a run measures.
type figures struct {
	events *observe.Recorder
	times  metrics.StepTimes
	lines  *metrics.Writer     // rank 0 with a run directory
	board  *tensorboard.Writer // likewise, when observe.tensorboard is set
	spans  []observe.Span      // kept for the trace
	lost   int                 // that the recorder could not keep
	trace  bool

	prediction prediction // of a model that is cut
	start      int64
	lossFirst  *float64
	lossLast   *float64
	gradFirst  *string
	hashing    sync.WaitGroup // for gradFirst
	firstStep  time.Duration
	samples    int           // of the steps after the warm-up, or of all until then
	elapsed    time.Duration // likewise
}

func newFigures(s *session) (*figures, error) {
	f := &figures{events: s.job.Events, times: metrics.StepTimes{Warmup: warmup}, trace: s.cfg.Observe.Trace}
	if s.comm.Rank() != 0 || s.job.RunDir == "" {
		return f, nil
	}
	var err error
	if s.cfg.Observe.TensorBoard {
		if f.board, err = tensorboard.Open(s.job.RunDir, s.job.Started); err != nil {
			return nil, err
		}
	}
	f.lines, err = metrics.Open(filepath.Join(s.job.RunDir, "metrics.jsonl"), s.fusion.Completed()+1, time.Second)
	return f, err
}

// begin starts a step. What was recorded since the last one belongs to no step,
// but for parameters and sums on their way from the last to the next.
func (f *figures) begin() {
	f.hashing.Wait()
	f.lost += f.events.Drain(func(span observe.Span) {
		if strings.HasPrefix(span.Name, parallel.ParametersLabel) || strings.HasPrefix(span.Name, parallel.BucketLabel) {
			f.times.Add(span)
		}
		f.keep(span)
	})
	f.start = f.events.Now()
}

func (f *figures) keep(span observe.Span) {
	if f.trace {
		f.spans = append(f.spans, span)
	}
}

// end closes a step, writes its line and tells whoever listens.
func (f *figures) end(s *session, step, samples int, o parallel.Outcome, rate float64) error {
	f.events.Record(observe.Span{Kind: observe.Step, Lane: "steps", Name: "step", Start: f.start, End: f.events.Now(), Step: step})
	f.lost += f.events.Drain(func(span observe.Span) {
		span.Step = step // calls do not know theirs
		f.times.Add(span)
		f.keep(span)
	})
	t := f.times.EndStep()
	if s.isCut() {
		f.prediction.add(len(s.owners), s.executor, t.Optimizer)
	}
	took := time.Duration(t.Step * float64(time.Millisecond))
	if f.lossFirst == nil {
		loss := o.Loss
		f.lossFirst, f.firstStep = &loss, time.Since(s.job.Started)
	}
	if finite(o.Loss) { // else that of the last step that was not skipped, or none
		if f.lossLast == nil {
			f.lossLast = new(float64)
		}
		*f.lossLast = o.Loss
	}
	if f.times.Steps() == warmup+1 {
		f.samples, f.elapsed = 0, 0
	}
	f.samples += samples
	f.elapsed += took
	rateNow := float64(samples) / took.Seconds()
	epoch := float64(step) / float64(s.sampler.StepsPerEpoch())
	tokensNow := 0.0
	if s.data.Text != nil {
		tokensNow = rateNow * float64(s.targets())
	}
	if err := f.write(metrics.Line{Step: step, Epoch: epoch, Loss: o.Loss, LearningRate: rate, SamplesPerSec: rateNow, TokensPerSec: tokensNow, LossScale: o.LossScale, Times: t}); err != nil {
		return err
	}
	counted := f.times.Steps()
	if counted > warmup {
		counted -= warmup
	}
	mean := f.elapsed / time.Duration(counted)
	s.emit(Event{Kind: Stepped, Loss: o.Loss, Accuracy: float64(o.Correct) / float64(max(o.Counted, 1)), LR: rate,
		SamplesPerSec: rateNow, TokensPerSec: tokensNow, Remaining: mean * time.Duration(s.total-step)})
	return nil
}

// write puts a step into the files of rank 0.
func (f *figures) write(l metrics.Line) error {
	if f.lines == nil {
		return nil
	}
	if err := f.lines.Write(l); err != nil {
		return err
	}
	if l.TokensPerSec > 0 {
		if err := f.scalars(l.Step, scalar{"train/perplexity", math.Exp(l.Loss)}, scalar{"train/tokens_per_sec", l.TokensPerSec}); err != nil {
			return err
		}
	}
	if l.LossScale > 0 {
		if err := f.scalars(l.Step, scalar{"train/loss_scale", l.LossScale}); err != nil {
			return err
		}
	}
	return f.scalars(l.Step, scalar{"train/loss", l.Loss}, scalar{"train/lr", l.LearningRate},
		scalar{"train/samples_per_sec", l.SamplesPerSec}, scalar{"time/step_ms", l.Times.Step}, scalar{"time/exposed_ms", l.Exposed})
}

type scalar struct {
	tag   string
	value float64
}

func (f *figures) scalars(step int, values ...scalar) error {
	if f.board == nil {
		return nil
	}
	for _, v := range values {
		if err := f.board.Scalar(int64(step), v.tag, v.value); err != nil {
			return err
		}
	}
	return nil
}

// hashGradients hashes the gradients of the first step: whole ones beside the
// update, which reads them only, and the next step waits for it.
func (s *session) hashGradients(ctx context.Context) error {
	g, err := s.fusion.Gradients(ctx)
	if err != nil {
		return err
	}
	f, hash := s.figures, ""
	f.gradFirst = &hash
	if s.cutOverRanks() {
		hash, err = s.gradientsHash(ctx, g)
		return err
	}
	f.hashing.Go(func() { hash = parallel.Hash(g) })
	return nil
}

func (f *figures) close() error {
	f.hashing.Wait()
	var err error
	if f.lines != nil {
		err = f.lines.Close()
	}
	if f.board != nil {
		err = errors.Join(err, f.board.Close())
	}
	return err
}

// summary fills in everything but the hashes of the end.
func (f *figures) summary(ctx context.Context, s *session) (*metrics.Summary, error) {
	f.begin()
	rss, err := largest(ctx, s.comm, resident()/(1<<20))
	if err != nil {
		return nil, err
	}
	optimizer, err := largest(ctx, s.comm, float64(s.fusion.OptimizerBytes())/(1<<20))
	if err != nil {
		return nil, err
	}
	steps := s.fusion.Completed()
	out := &metrics.Summary{
		Model: s.model.Name, Params: int64(s.model.ParamCount()), WorldSize: s.comm.Size(), DataParallel: s.mesh.Data, Pipeline: s.mesh.Pipeline, Tensor: s.mesh.Tensor,
		Steps: steps, Epochs: s.sampler.Epoch(max(steps-1, 0)) + 1, GlobalBatch: s.cfg.Data.Batch, MicroBatch: s.micro,
		BucketMB:  s.cfg.BucketMB(len(s.comm.Hosts()), s.comm.Size()),
		LossFirst: f.lossFirst, LossLast: f.lossLast, GradSHA256First: f.gradFirst,
		PeakRSSMB: rss, OptimizerMB: optimizer, ActivationsMB: float64(s.executor.Activations()) / (1 << 20), TimeToFirstStepS: f.firstStep.Seconds(),
	}
	if s.last.done {
		out.EvalLoss, out.EvalAccuracy = &s.last.loss, &s.last.accuracy
	}
	if f.elapsed > 0 {
		out.SamplesPerSec = float64(f.samples) / f.elapsed.Seconds()
		if s.data.Text != nil {
			tokens := out.SamplesPerSec * float64(s.targets())
			out.TokensPerSec = &tokens
		}
	}
	f.times.Summarize(out)
	out.StepMsPredicted, err = s.predicted(ctx)
	return out, err
}

// largest returns the maximum of v over the ranks.
func largest(ctx context.Context, c collective.Comm, v float64) (float64, error) {
	buf := []float64{v}
	if c.Size() == 1 {
		return v, nil
	}
	err := c.Start(ctx, collective.Call{Kind: plan.AllReduce, Op: collective.Max, In: device.FromF64(buf), Label: "most memory"}).Wait(ctx)
	return buf[0], err
}
