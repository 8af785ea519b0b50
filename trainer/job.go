package trainer

import (
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// Job is what Run trains. Only Config is needed; the other fields replace what
// Run would make from it.
type Job struct {
	Config *config.Config
	Model  *models.Model   // nil: built as Config.Model says
	Data   *data.Source    // nil: opened as Config.Data says
	Loss   parallel.Loss   // nil: softmax cross-entropy of the classes or tokens. With parallel.tensor logits may have some classes only, which nn.Tape.CrossEntropy can take
	Comm   collective.Comm // nil: this rank is alone
	Device device.Device   // nil: made as Config.Compute says; else the caller closes it

	Resume bool // continue from the newest good checkpoint of Config.Checkpoint.Dir
	RunDir string
	// NoEvaluation leaves out every evaluation, also that after the last step:
	// for measuring steps.
	NoEvaluation bool
	// Events is what the Comm records to, so that communication appears in
	// figures and traces; nil makes one that only Run uses.
	Events *observe.Recorder
	// Stop, when closed, ends the job after the present step, with a
	// checkpoint; Run then returns ErrStopped. It is enough that one rank's is.
	Stop <-chan struct{}
	// Cut, if set, is told the most bytes that go from a stage of a cut model to the
	// next one at once, before anything is computed, on the goroutine of Run.
	Cut func(message int)
	// On receives what happens, on the goroutine of Run. nil for nothing.
	On func(Event)
	// Started is when the process started, for the time to the first step.
	Started time.Time
}

// EventKind says what an Event is about.
type EventKind uint8

// The kinds of events.
const (
	Started   EventKind = iota // the job is set up; Total, World and Text are set
	Stepped                    // a step is done
	Evaluated                  // an evaluation is done
	Saved                      // a checkpoint was published; Text is its path
	Resumed                    // a checkpoint was loaded; Text is its path
	Warned                     // something that the user should know; Text
)

// Event is what Job.On receives. Losses and figures are of the whole job.
type Event struct {
	Kind          EventKind
	Step, Total   int // completed steps, steps of the whole run
	Epoch, Epochs int // 1 for the first
	World         int
	Loss          float64
	Accuracy      float64 // share of the samples or tokens counted in this step or evaluation
	Perplexity    float64 // of a text: exp(Loss); 0 otherwise
	LR            float64
	SamplesPerSec float64
	TokensPerSec  float64 // of a text; 0 otherwise
	Remaining     time.Duration
	Text          string
}

// parts is what a job is made of, after defaults.
type parts struct {
	device device.Device
	model  *models.Model // see build
	data   *data.Source
	loss   parallel.Loss
	owned  bool // Run closes device
}

func (j Job) parts() (p parts, err error) {
	c := j.Config
	p.data, p.device, p.loss = j.Data, j.Device, j.Loss
	if p.data == nil {
		d := c.Data
		d.Seed, d.Context = c.Train.Seed, c.Model.Context
		if p.data, err = data.Open(d); err != nil {
			return p, err
		}
	}
	if p.device == nil {
		local := 1
		if j.Comm != nil {
			local = localRanks(j.Comm)
		}
		if p.device, err = NewDevice(c, local); err != nil {
			return p, err
		}
		p.owned = true
	}
	if p.loss == nil {
		p.loss = CrossEntropy
		if p.data.Text != nil {
			p.loss = TokenCrossEntropy
		}
	}
	return p, nil
}

// CrossEntropy is the default loss: softmax cross-entropy of the last block's
// first output with integer labels.
func CrossEntropy(t *nn.Tape, out []*nn.Var, b parallel.Batch) *nn.Var {
	return t.CrossEntropy(out[0], b.Target, nn.CrossEntropyConfig{})
}

// TokenCrossEntropy is the default loss of texts: CrossEntropy in which targets
// that are data.Ignore do not count.
func TokenCrossEntropy(t *nn.Tape, out []*nn.Var, b parallel.Batch) *nn.Var {
	return t.CrossEntropy(out[0], b.Target, nn.CrossEntropyConfig{Ignore: data.Ignore, HasIgnore: true})
}

func localRanks(c collective.Comm) int {
	for _, ranks := range c.Hosts() {
		for _, r := range ranks {
			if r == c.Rank() {
				return len(ranks)
			}
		}
	}
	return 1
}
