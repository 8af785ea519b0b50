package trainer

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// costsFile is the table of costs in the directory of a run.
const costsFile = "blocks.csv"

// blockCosts tells what the model's blocks take of a micro-batch, the same on all
// ranks: from the file that parallel.cuts names, else counted, and unless the run
// is deterministic or the cut given, with times that rank 0 has measured.
func (s *session) blockCosts(ctx context.Context) ([]parallel.BlockCost, error) {
	costs, err := s.countCosts()
	if err != nil {
		return nil, err
	}
	text, err := s.fromFirst(ctx, func() ([]byte, error) {
		times, _, err := s.blockTimes(costs, len(s.cfg.Parallel.Cuts) == 0)
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		if err := parallel.WriteCosts(&text, times); err != nil {
			return nil, err
		}
		return text.Bytes(), s.keepCosts(text.Bytes())
	}, "costs of the blocks")
	if err != nil {
		return nil, err
	}
	return parallel.ReadCosts(bytes.NewReader(text))
}

// blockTimes is counted costs with the times of the file, or of a measurement where
// that is asked for and the run need not be the same everywhere; from says which.
func (s *session) blockTimes(counted []parallel.BlockCost, measure bool) (costs []parallel.BlockCost, from string, err error) {
	cuts := s.cfg.Parallel.Cuts
	switch {
	case len(cuts) > 0 && config.IsFile(cuts[0]):
		costs, err = costsFrom(s.cfg, counted)
		return costs, "from " + cuts[0], err
	case !measure, s.cfg.Train.Deterministic == "world":
		return counted, "counted, not measured", nil
	}
	costs, err = s.measureCosts(counted)
	return costs, "measured on this host", err
}

// costsFrom reads the file that parallel.cuts names.
func costsFrom(c *config.Config, counted []parallel.BlockCost) ([]parallel.BlockCost, error) {
	name := c.Parallel.Cuts[0]
	text, err := readFile(c, "parallel.cuts", name)
	if err != nil {
		return nil, err
	}
	costs, err := parallel.ReadCosts(bytes.NewReader(text))
	if err != nil {
		return nil, c.Errorf("parallel.cuts", "parallel.cuts: %s: %v", name, err)
	}
	if len(costs) != len(counted) {
		return nil, c.Errorf("parallel.cuts", "parallel.cuts: %s has %s, the model has %d", name, config.Plural(len(costs), "block"), len(counted))
	}
	for i := range costs {
		if costs[i].Name != counted[i].Name {
			return nil, c.Errorf("parallel.cuts", "parallel.cuts: %s has %s for block %d, which is %s", name, costs[i].Name, i, counted[i].Name)
		}
	}
	return costs, nil
}

// keepCosts leaves the table in the run's directory.
func (s *session) keepCosts(text []byte) error {
	if s.job.RunDir == "" {
		return nil
	}
	return metrics.Replace(filepath.Join(s.job.RunDir, costsFile), text)
}

// mostLent is how many numbers all parameters of a model that computes for nothing
// have together: more than what a processor keeps near itself, so that blocks do not
// find there what they would have to fetch in a training.
const mostLent = 4 << 20

// lend gives a model that computes for nothing memory: its parameters lie in the
// same, one behind the other and then again from the start, and so do their
// gradients. It is of no heap: what is freed there, on small pages, is what the
// training's own parameters and gradients would get next.
func (s *session) lend(m *models.Model, from *device.HostRegions) error {
	params, most, all := nn.Params(m.Blocks), 0, 0
	for _, p := range params {
		most, all = max(most, p.Len()), all+p.Len()
	}
	size := max(most, min(all, mostLent))
	region, err := from.Region(2 * 4 * size)
	if err != nil {
		return err
	}
	both := region.Slice(0, 2*4*size).As(device.F32).F32()
	values, gradients := both[:size], both[size:]
	nn.UniformFan(256).Fill(values, s.cfg.Train.Seed, "borrowed")
	at := 0
	for _, p := range params {
		if at+p.Len() > size {
			at = 0
		}
		p.Value = device.FromF32(values[at : at+p.Len()])
		for use := range 2 { // an embedding that is the head's matrix too has two
			p.Bind(use, device.FromF32(gradients[at:at+p.Len()]))
		}
		at += p.Len()
	}
	for _, state := range nn.States(m.Blocks) {
		if r := state.Running; r != nil && r.Mean.IsZero() {
			r.Mean, r.Var = device.FromF32(make([]float32, r.Channels)), device.FromF32(make([]float32, r.Channels))
			for c := range r.Channels {
				r.Var.F32()[c] = 1
			}
		}
	}
	return nil
}

// countCosts finds out what blocks take by passes that compute nothing and count:
// what a second sample adds to a first one, times the samples of a micro-batch.
func (s *session) countCosts() (costs []parallel.BlockCost, err error) {
	defer nn.Catch(&err)
	model, _, err := s.probeModel()
	if err != nil {
		return nil, err
	}
	var lent device.HostRegions
	defer lent.Close()
	if err := s.lend(model, &lent); err != nil {
		return nil, err
	}
	one, two := s.countPass(model, 1), s.countPass(model, 2)
	for i := range one {
		scale := func(a, b float64) float64 { return a + (b-a)*float64(s.micro-1) }
		c := one[i]
		c.Forward = scale(one[i].Forward, two[i].Forward)
		c.Backward = 2 * c.Forward // a product for each of its two factors
		c.Activations = int(scale(float64(one[i].Activations), float64(two[i].Activations)))
		c.Output = int(scale(float64(one[i].Output), float64(two[i].Output)))
		for _, p := range model.Blocks[i].Params() {
			c.Parameters += 4 * p.Len()
		}
		costs = append(costs, c)
	}
	return costs, nil
}

func (s *session) countPass(model *models.Model, n int) (costs []parallel.BlockCost) {
	size, counted := s.training.Sizes(), 0.0
	t := nn.NewTape(counting{s.device, &counted})
	defer t.Arena().Close()
	t.Begin(nn.Pass{Precision: s.precision()})
	input, shape := s.input(data.Samples{X: make([]float32, n*size.X), Tokens: make([]int32, n*size.Tokens)}, n)
	x := t.List(t.Input(input, shape, false))
	for _, b := range model.Blocks {
		before := t.Arena().Peak()
		counted = 0
		x = b.Forward(t, x)
		c := parallel.BlockCost{Name: b.Name(), Forward: counted, Activations: t.Arena().Peak() - before}
		for _, y := range x {
			c.Output += 4 * y.Shape.Len()
		}
		if s.recomputes() {
			c.Activations = min(c.Activations, c.Output)
		}
		costs = append(costs, c)
	}
	return costs
}

// A micro-batch is run for its times at least fewestPasses times, and up to
// mostPasses times until profileTime has gone by; the shortest time counts, since
// whatever disturbs makes it longer.
const (
	fewestPasses = 2
	mostPasses   = 10
	profileTime  = 500 * time.Millisecond
)

// measureCosts replaces counted times by measured ones, in milliseconds.
func (s *session) measureCosts(costs []parallel.BlockCost) (_ []parallel.BlockCost, err error) {
	defer nn.Catch(&err)
	model, _, err := s.probeModel()
	if err != nil {
		return nil, err
	}
	var lent device.HostRegions
	defer lent.Close()
	if err := s.lend(model, &lent); err != nil {
		return nil, err
	}
	size := s.training.Sizes()
	samples := data.Samples{X: make([]float32, s.micro*size.X), Tokens: make([]int32, s.micro*size.Tokens), Y: make([]int32, s.micro*size.Y)}
	nn.UniformFan(3).Fill(samples.X, s.cfg.Train.Seed, "samples")
	input, shape := s.input(samples, s.micro)
	batch := parallel.Batch{Input: input, Shape: shape, Target: device.FromI32(samples.Y)}
	t := nn.NewTape(s.device)
	defer t.Arena().Close()
	t.Events = observe.NewRecorder(1 << 12)
	counted := slices.Clone(costs)
	began := time.Now()
	for pass := range mostPasses {
		if pass >= fewestPasses && time.Since(began) > profileTime {
			break
		}
		for i, now := range s.timedPass(t, model, batch) {
			if pass == 0 {
				costs[i].Forward, costs[i].Backward = now.Forward, now.Backward
			}
			costs[i].Forward, costs[i].Backward = min(costs[i].Forward, now.Forward), min(costs[i].Backward, now.Backward)
		}
	}
	within(costs, counted, func(c *parallel.BlockCost) *float64 { return &c.Forward })
	within(costs, counted, func(c *parallel.BlockCost) *float64 { return &c.Backward })
	return costs, nil
}

// timedPass runs a micro-batch and returns the times of the blocks, in
// milliseconds; those of the loss are the last block's.
func (s *session) timedPass(t *nn.Tape, model *models.Model, batch parallel.Batch) []parallel.BlockCost {
	last := len(model.Blocks) - 1
	places := map[string]int{"loss": last}
	for i, b := range model.Blocks {
		places[b.Name()] = i
	}
	times := make([]parallel.BlockCost, len(model.Blocks))
	t.Begin(nn.Pass{Training: true, Seed: s.cfg.Train.Seed, Recompute: s.recomputes(), Precision: s.precision()})
	out := nn.Forward(t, model.Blocks, t.Input(batch.Input, batch.Shape, false))
	start := t.Events.Now()
	loss := s.loss(t, out, batch)
	times[last].Forward += milliseconds(t.Events.Now() - start)
	t.SeedLoss(loss, 1)
	t.Backward()
	t.Events.Drain(func(span observe.Span) {
		i, known := places[span.Name]
		switch {
		case !known:
		case span.Kind == observe.Forward:
			times[i].Forward += milliseconds(span.End - span.Start)
		case span.Kind == observe.Backward:
			times[i].Backward += milliseconds(span.End - span.Start)
		}
	})
	return times
}

// mostDoubt is how far a measured time may be from what was counted, beside what
// is common to all blocks. More is no property of the block: something disturbed
// each of its passes.
const mostDoubt = 2.5

// within brings times that stand out back to mostDoubt.
func within(costs, counted []parallel.BlockCost, of func(*parallel.BlockCost) *float64) {
	var ratios []float64
	for i := range costs {
		if c := *of(&counted[i]); c > 0 {
			ratios = append(ratios, *of(&costs[i])/c)
		}
	}
	if len(ratios) == 0 {
		return
	}
	slices.Sort(ratios)
	usual := ratios[len(ratios)/2]
	for i := range costs {
		low, high := *of(&counted[i])*usual/mostDoubt, *of(&counted[i])*usual*mostDoubt
		*of(&costs[i]) = min(max(*of(&costs[i]), low), high)
	}
}

func milliseconds(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }
