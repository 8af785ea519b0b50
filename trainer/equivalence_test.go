package trainer_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel/schedule"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

var (
	gridSize = flag.Int("grid", 8, "combinations that TestEquivalence draws")
	gridSeed = flag.Uint64("grid-seed", 0, "draw those of this seed again; 0: of a new one")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// combination is one way to run a job. The first group of fields decides what is
// computed; the second must not.
type combination struct {
	model     string
	optimizer string
	batch     int
	micro     int
	clip      float64
	augment   string
	dropout   float64
	level     string // of mixed precision, and its type
	tensor    int    // ranks that share each layer: they round partial sums
	wire      string // "": deterministic; see TestWireGrid
	sparse    string // gradients of gpt's embedding: exact, lazy or none
	steps     int    // 0: gridSteps

	layout
	then      layout // of a job that continues
	transport string
	packed    bool // floats, also between ranks of a host
	threshold float64
	threads   int
	overlap   bool
	forward   bool   // sums beside the next forward pass, where they can be had; over many steps they go in all orders
	recompute string // none, blocks, or stages as a list, where there is a pipeline
	shard     bool
	stopAfter int // 0: run through; else stop there and resume
	async     bool
}

// layout is how many ranks there are and how the model is cut over them.
type layout struct {
	ranks    int
	pipeline int
	schedule string // of a pipeline
}

// blocks is how many the models of the grid have.
func blocks(model string) int {
	return map[string]int{"mlp": 3, "cnn": 4, "gpt": 4, "resnet20": 11}[model]
}

// drawLayout draws one that the model has blocks enough for.
func drawLayout(r *rand.Rand, model string, tensor int) layout {
	for {
		l := layout{ranks: tensor * (1 + r.IntN(max(4/tensor, 2)))}
		if l.pipeline = 1 + r.IntN(l.ranks/tensor); l.ranks/tensor%l.pipeline != 0 {
			continue
		}
		if l.pipeline == 1 {
			return l
		}
		l.schedule = schedule.Names()[r.IntN(len(schedule.Names()))]
		if per, err := schedule.StagesPerRank(l.schedule, 2); err == nil && l.pipeline*per <= blocks(model) {
			return l
		}
	}
}

const gridSteps = 4

// source is what combinations of a test are drawn from, and its seed.
func source(test uint64) (*rand.Rand, uint64) {
	seed := *gridSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return rand.New(rand.NewPCG(seed, test)), seed
}

func draw(r *rand.Rand) combination {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	c := combination{
		model: pick("mlp", "cnn", "resnet20", "gpt"), optimizer: pick(optim.Names()...),
		batch: []int{24, 37, 64}[r.IntN(3)], clip: []float64{0, 0.5}[r.IntN(2)], augment: pick("none", "flip", "crop-flip"),
		transport: pick(transportNames()...), threshold: []float64{0.01, 1, 1000}[r.IntN(3)],
		dropout: []float64{0, 0.25}[r.IntN(2)], recompute: pick("none", "blocks"), shard: r.IntN(2) == 0,
		threads: 1 + r.IntN(2), overlap: r.IntN(4) > 0, stopAfter: r.IntN(gridSteps), async: r.IntN(2) == 0,
	}
	if c.tensor = 1; models.Cuts(c.model) {
		c.tensor = 1 + r.IntN(3)
	}
	c.layout, c.then = drawLayout(r, c.model, c.tensor), drawLayout(r, c.model, c.tensor)
	c.micro = []int{5, 8, 16}[r.IntN(3)]
	if max(c.pipeline, c.then.pipeline) > 1 && c.recompute == "none" && r.IntN(2) == 0 {
		c.recompute = fmt.Sprint("[", r.IntN(2), "]")
	}
	if c.sparse = pick("none", "exact", "lazy"); c.model != "gpt" || c.tensor > 1 || c.optimizer == "lars" || c.optimizer == "lamb" {
		c.sparse = "none"
	}
	c.packed = r.IntN(3) == 0
	c.level = pick("O0", "O0", "O0", "O1 f16", "O2 f16", "O2 bf16", "O3 bf16")
	if c.forward = r.IntN(2) == 0; c.forward && c.defers() {
		c.steps = 3 * gridSteps
		c.stopAfter = r.IntN(c.steps)
	}
	return c
}

// defers reports whether sums can go on beside the next forward pass.
func (c combination) defers() bool {
	return c.pipeline == 1 && c.tensor == 1 && c.overlap && !c.shard && c.clip == 0 && c.optimizer != "lars" && c.optimizer != "lamb" && c.sparse == "none" && !strings.Contains(c.wire, "powersgd")
}

// computes is the part that decides the result.
func (c combination) computes() combination {
	return combination{model: c.model, optimizer: c.optimizer, batch: c.batch, micro: c.micro, clip: c.clip, augment: c.augment, dropout: c.dropout, level: c.level, tensor: c.tensor, sparse: c.sparse, steps: c.steps,
		layout: layout{ranks: c.tensor, pipeline: 1}, transport: "inproc", threshold: 16, threads: 1, overlap: true, recompute: "none"}
}

func (c combination) config(t *testing.T, dir string) *config.Config {
	set := []string{
		"model.name=" + c.model, fmt.Sprint("model.dropout=", c.dropout), fmt.Sprint("parallel.shard_optimizer=", c.shard), fmt.Sprint("data.batch=", c.batch),
		"optim.name=" + c.optimizer, "optim.lr=0.01", fmt.Sprint("optim.clip_norm=", c.clip),
		fmt.Sprint("train.steps=", cmp.Or(c.steps, gridSteps)), fmt.Sprint("train.micro_batch=", c.micro), "train.deterministic=world", "train.eval_every=never", fmt.Sprint("parallel.tensor=", c.tensor),
		fmt.Sprint("fusion.threshold_mb=", c.threshold), fmt.Sprint("fusion.overlap=", c.overlap), fmt.Sprint("compute.threads=", c.threads),
		fmt.Sprintf("checkpoint.every=%d steps", max(c.steps-7, 1)), fmt.Sprint("checkpoint.async=", c.async), "checkpoint.dir=" + dir,
	}
	if c.forward && c.defers() {
		set = append(set, "fusion.overlap_forward=true")
	}
	if c.pipeline > 1 {
		set = append(set, fmt.Sprint("parallel.pipeline=", c.pipeline), "parallel.schedule="+c.schedule)
	}
	switch stages := strings.HasPrefix(c.recompute, "["); {
	case !stages:
		set = append(set, "model.recompute="+c.recompute)
	case c.pipeline > 1:
		set = append(set, "parallel.recompute="+c.recompute)
	}
	if level, kind, ok := strings.Cut(c.level, " "); ok {
		set = append(set, "amp.level="+level, "amp.type="+kind)
	}
	if c.wire != "" {
		set = append(set, "train.deterministic=off", "fusion.wire="+c.wire)
		if c.pipeline > 1 { // else cut by times that are measured, and 16 bits round where it is cut
			per, err := schedule.StagesPerRank(c.schedule, 2)
			require.NoError(t, err)
			var cuts []string
			for stage, stages := 1, c.pipeline*per; stage < stages; stage++ {
				cuts = append(cuts, fmt.Sprint(stage*blocks(c.model)/stages))
			}
			set = append(set, "parallel.cuts=["+strings.Join(cuts, ", ")+"]")
		}
	}
	if c.sparse != "none" {
		set = append(set, "model.sparse_embedding=true", fmt.Sprint("optim.lazy=", c.sparse == "lazy"))
	}
	if c.model == "gpt" {
		set = append(set, "model.layers=2", "model.heads=3", "model.width=12", "model.context=7",
			"data.name=synthetic-text", "data.vocabulary=19", "data.train_samples=100", "data.test_samples=30")
	} else {
		set = append(set, "data.name=digits", "data.augment="+c.augment)
	}
	cfg, err := config.Load("", config.Sources{Set: set})
	require.NoError(t, err)
	return cfg
}

// run runs the combination and returns the summary that all ranks agree on.
func (c combination) run(t *testing.T) *metrics.Summary {
	dir := ""
	if c.stopAfter > 0 {
		dir = t.TempDir()
		out := c.ranksRun(t, dir, c.stopAfter, false)
		require.Equal(t, c.stopAfter, out.Steps)
		c.layout = c.then
	}
	return c.ranksRun(t, dir, 0, c.stopAfter > 0)
}

func (c combination) ranksRun(t *testing.T, dir string, stopAfter int, resume bool) *metrics.Summary {
	cfg := c.config(t, dir)
	out := make([]*metrics.Summary, c.ranks)
	c.world(t, func(ctx context.Context, comm collective.Comm) error {
		stop := make(chan struct{})
		job := trainer.Job{Config: cfg, Comm: comm, Resume: resume, Stop: stop}
		job.On = func(e trainer.Event) {
			// The last rank asks before the last step of the first part, so that
			// the decision has to travel.
			last := comm.Rank() == comm.Size()-1
			if last && (e.Kind == trainer.Stepped && e.Step == stopAfter-1 || e.Kind == trainer.Started && stopAfter == 1) {
				close(stop)
			}
		}
		summary, err := trainer.Run(ctx, job)
		if stopAfter > 0 && errors.Is(err, trainer.ErrStopped) {
			err = nil
		}
		out[comm.Rank()] = summary
		return err
	})
	for r := range out {
		require.Equal(t, out[0].StateSHA256, out[r].StateSHA256, "rank %d", r)
	}
	return out[0]
}

// TestEquivalence is the promise of deterministic: world. It draws combinations
// of settings, among them interruption and resumption at any step, and requires
// the state's hash of the plainest run: one rank, one thread, no interruption.
func TestEquivalence(t *testing.T) {
	r, seed := source(0)
	reference := map[combination]string{}
	size := *gridSize
	if testing.Short() {
		size = min(size, 3)
	}
	for i := range size {
		c := draw(r)
		t.Logf("seed %d, combination %d: %+v", seed, i, c)
		want, ok := reference[c.computes()]
		if !ok {
			want = c.computes().run(t).StateSHA256
			reference[c.computes()] = want
		}
		require.Equal(t, want, c.run(t).StateSHA256)
	}
}
