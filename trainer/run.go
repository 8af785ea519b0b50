package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gradfusion/gradfusion/amp"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// ErrStopped is what Run returns when Job.Stop ended it early; the checkpoint,
// if one is configured, has been written.
var ErrStopped = errors.New("stopped before the last step")

// ErrDiverged is wrapped by the error of a loss that is no finite number, or of
// gradients that overflow whatever the loss scale.
var ErrDiverged = errors.New("the training diverged")

// session is one Run.
type session struct {
	job  Job
	cfg  *config.Config
	comm collective.Comm
	// norms joins the ranks that share statistics of BatchNorm; nil: none do.
	norms collective.Comm
	// shards says that the optimizer is sharded. auto is decided when the model is
	// built.
	shards bool
	parts
	mesh     *parallel.Mesh
	partners *parallel.Partners // nil: layers are not cut
	grid

	micro    int
	expect   int // bytes that a micro-batch takes at least in any stage, 0 where that is not known
	training data.Filling
	testing  data.Filling
	contents [2]string // what data.Source.Describe says of the two
	sampler  *data.Sampler
	total    int // steps of the whole run
	rates    optim.Schedule
	scaler   *amp.Scaler // nil at amp.level: O0
	filling  *nn.Filling // initial values on their way; nil: they are there
	fusion   *parallel.GradFusion
	executor *parallel.Executor
	feeder   *feeder // nil on a rank that reads no samples

	figures *figures
	saver   *saver
	last    evaluation
	clock   struct{ evaluated, saved time.Time }

	resumption *resumption // until the first step; nil: the job starts afresh
	resumed    string      // path of the checkpoint that the run continues
	warnings   []string    // to be told when the run starts
	states     []nn.State  // watched until a warning about BatchNorm is given
}

// Run trains. It returns when the configured steps are done, when ctx ends, or
// on the first error; the summary is also returned with ErrStopped.
func Run(ctx context.Context, job Job) (summary *metrics.Summary, err error) {
	if job.Config == nil {
		return nil, errors.New("trainer: Job.Config is missing")
	}
	if c := job.Config; c.Parallel.DryRun {
		return nil, c.Errorf("parallel.dry_run", "parallel.dry_run trains nothing: DryRun tells what a training would be")
	}
	s := &session{job: job, cfg: job.Config, comm: job.Comm, scaler: job.Config.AMP.Settings().Scaler()}
	if s.job.Events == nil {
		s.job.Events = observe.NewRecorder(1 << 16)
	}
	if s.job.Started.IsZero() {
		s.job.Started = time.Now()
	}
	if s.comm == nil {
		s.comm = alone()
		defer s.comm.Close()
	}
	s.shards = s.cfg.Parallel.ShardOptimizer == config.On
	if s.parts, err = job.parts(); err != nil {
		return nil, err
	}
	if s.owned {
		defer s.device.Close()
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	stopped, err := s.train(ctx)
	if err != nil {
		return nil, err
	}
	summary, err = s.finish(ctx)
	if err == nil && stopped {
		err = ErrStopped
	}
	return summary, err
}

// cut decides on micro-batches, steps and learning rates.
func (s *session) cut() (err error) {
	c := s.cfg
	columns, err := config.Columns(c, s.comm.Size())
	if err != nil {
		return err
	}
	if s.micro, err = config.Batches(c, columns); err != nil {
		return err
	}
	augment, err := data.ParseAugment(c.Data.Augment)
	if err != nil {
		return err
	}
	if s.training, err = s.data.Training(augment, c.Train.Seed); err != nil {
		return err
	}
	if s.testing, err = s.data.Testing(); err != nil {
		return err
	}
	s.contents[0], s.contents[1] = s.data.Describe()
	if s.sampler, err = data.NewSampler(s.training.Len(), c.Data.Batch, c.Train.Seed); err != nil {
		return err
	}
	s.total = c.Train.Steps
	if s.total == 0 {
		s.total = c.Train.Epochs * s.sampler.StepsPerEpoch()
	}
	if s.rates, err = optim.NewSchedule(c.Optim.Rates(s.total)); err != nil {
		return fmt.Errorf("optim.schedule.name: %w", err)
	}
	return nil
}

// prepare builds what a step needs.
func (s *session) prepare(ctx context.Context) error {
	for _, do := range []func() error{
		s.cut,
		s.checkLocalSGD,
		func() error { return s.compareRanks(ctx, s.common()) },
		func() error { return s.place(ctx) },
		s.build,
		func() error { return s.shard(ctx) },
		func() error { return s.divide(ctx) },
		s.materialize,
		func() error { return s.joinNorms(ctx) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	opt, err := s.optimizer()
	if err != nil {
		return err
	}
	if s.saver, err = newSaver(s); err != nil {
		return err
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	s.fusion, err = parallel.NewGradFusion(ctx, s.stages, opt, s.fusionConfig(opt))
	if err != nil {
		return err
	}
	if err := s.resume(ctx); err != nil {
		return err
	}
	s.warnOfWire()
	s.states = nn.States(s.blocks)
	if err := s.openLoader(); err != nil {
		return err
	}
	s.executor = parallel.NewExecutor(s.executorConfig())
	s.figures, err = newFigures(s)
	return err
}

// train runs the steps that are left and reports whether it was stopped.
func (s *session) train(ctx context.Context) (stopped bool, err error) {
	s.emit(Event{Kind: Started, Text: s.device.Name()})
	for _, w := range s.warnings {
		s.emit(Event{Kind: Warned, Text: w})
	}
	if s.resumed != "" {
		s.emit(Event{Kind: Resumed, Text: s.resumed})
	}
	s.clock.evaluated, s.clock.saved = time.Now(), time.Now()
	for step := s.fusion.Completed(); step < s.total; step++ {
		s.vote()
		if err := s.step(ctx, step); err != nil {
			return false, err
		}
		votes := s.fusion.Outcome().Votes
		if err := s.after(ctx, step+1, votes); err != nil {
			return false, err
		}
		if votes&voteStop != 0 && step+1 < s.total {
			return true, s.saver.save(ctx, s)
		}
	}
	return false, nil
}

// step is one optimizer step; index counts from 0.
func (s *session) step(ctx context.Context, index int) error {
	samples := s.sampler.Size(index)
	s.figures.begin()
	if s.planned(index + 1) {
		s.fusion.Average()
	}
	if err := s.executor.Step(ctx, samples, s.micro); err != nil {
		return diverged(err)
	}
	s.filling.Wait()
	o := s.fusion.Outcome()
	if index == 0 {
		if err := s.hashGradients(ctx); err != nil {
			return err
		}
	}
	rate := s.rates.LR(index)
	if err := s.update(index, o, rate); err != nil {
		return err
	}
	if err := s.release(); err != nil {
		return err
	}
	if err := s.verifyPartners(ctx, index+1); err != nil {
		return err
	}
	s.warnSingles()
	return s.figures.end(s, index+1, samples, o, float64(rate))
}

func (s *session) emit(e Event) {
	if s.job.On == nil {
		return
	}
	e.Total, e.World, e.Epochs = s.total, s.comm.Size(), (s.total+s.sampler.StepsPerEpoch()-1)/s.sampler.StepsPerEpoch()
	if e.Step == 0 {
		e.Step = s.fusion.Completed()
	}
	e.Epoch = s.sampler.Epoch(max(e.Step-1, 0)) + 1
	if s.data.Text != nil && (e.Kind == Stepped || e.Kind == Evaluated) {
		e.Perplexity = math.Exp(e.Loss)
	}
	s.job.On(e)
}

// close ends what prepare has begun, as far as it came.
func (s *session) close() error {
	var errs []error
	if s.saver != nil {
		s.saver.settle()
	}
	s.filling.Wait()
	errs = append(errs, s.release())
	if s.feeder != nil {
		errs = append(errs, s.feeder.loader.Close())
	}
	if s.fusion != nil {
		errs = append(errs, s.fusion.Close())
	}
	errs = append(errs, s.closeNorms())
	if s.figures != nil {
		errs = append(errs, s.figures.close())
	}
	if s.mesh != nil {
		errs = append(errs, s.mesh.Close())
	}
	return errors.Join(errs...)
}
