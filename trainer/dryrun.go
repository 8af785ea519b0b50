package trainer

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel/schedule"
	"github.com/gradfusion/gradfusion/trainer/config"
	"github.com/gradfusion/gradfusion/wire"
)

// DryRun writes what a training of that configuration would be on a world of
// ranks, and trains nothing: who has which part, how long ranks would be idle,
// what a stage takes of memory, and what goes between ranks. Job's Comm, RunDir,
// and what is about a run are not used. The times of the blocks are measured here,
// or counted under train.deterministic: world.
func DryRun(job Job, world int, w io.Writer) (err error) {
	s := &session{job: job, cfg: job.Config, comm: alone()}
	s.job.RunDir = ""
	defer func() { err = errors.Join(err, s.comm.Close()) }()
	if s.parts, err = job.parts(); err != nil {
		return err
	}
	if s.owned {
		defer s.device.Close()
	}
	d := dryRun{session: s, world: world}
	if err := d.prepare(); err != nil {
		return err
	}
	var text strings.Builder
	for _, part := range []func(io.Writer) error{d.grid, d.table, d.times, d.links} {
		if err := part(&text); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, text.String())
	return err
}

type dryRun struct {
	*session
	world, columns int
	partners       *absent
	list           schedule.Schedule // of the longest column
	timing         schedule.Timing
	from           string // where the blocks' times are from
}

func (d *dryRun) prepare() (err error) {
	c := d.cfg
	if d.columns, err = config.Columns(c, d.world); err != nil {
		return err
	}
	if d.micro, err = config.Batches(c, d.columns); err != nil {
		return err
	}
	if d.training, err = d.data.Training(data.Augment{}, c.Train.Seed); err != nil {
		return err
	}
	if d.model, d.partners, err = d.probeModel(); err != nil {
		return err
	}
	costs, err := d.countCosts()
	if err != nil {
		return err
	}
	if costs, d.from, err = d.blockTimes(costs, true); err != nil {
		return err
	}
	d.list = schedule.OneStage(mostMicros(c, d.micro, d.columns))
	if c.Parallel.Pipeline > 1 {
		if d.list, _, err = layOut(c, d.world); err != nil {
			return err
		}
	}
	d.owners = d.list.Owners()
	if d.pipeline, err = cutModel(c, costs, d.list); err != nil {
		return err
	}
	d.timing, err = d.list.Simulate(d.pipeline.ScheduleCosts())
	return err
}

// grid says how the ranks are arranged.
func (d *dryRun) grid(w io.Writer) error {
	p := d.cfg.Parallel
	fmt.Fprintf(w, "%s on %s: pipeline %d x data %d x tensor %d, placement %s\n", d.model.Name, config.Plural(d.world, "rank"), p.Pipeline, d.columns, p.Tensor, d.cfg.Launch.Placement)
	name := p.Schedule
	if p.Pipeline == 1 {
		name = "one stage"
	}
	fmt.Fprintf(w, "%s, micro-batches of up to %s, %d of them in the longest column of a step of %d\n", name, config.Plural(d.micro, "sample"), d.list.Micros(), d.cfg.Data.Batch)
	if p.Pipeline > 1 {
		fmt.Fprintf(w, "cut: %s", d.pipeline.Picture())
	}
	return nil
}

// table has a line for each stage.
func (d *dryRun) table(w io.Writer) error {
	states, err := stateNames(d.cfg.Optim.Optimizer(), d.device)
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "stage\tplace\tblocks\tforward ms\tbackward ms\tmicro-batches held\tactivations\tweights, gradients, optimizer\tpeak memory")
	for stage, place := range d.owners {
		c, held := d.pipeline.Cost(stage), d.pipeline.Loads[stage].Held
		weights := float64(2*c.Parameters) + d.ownStates(len(states)*c.Parameters)
		activations := c.Activations * held
		fmt.Fprintf(t, "%d\t%d\t%s\t%.3g\t%.3g\t%d\t%s\t%s\t%s\n", stage, place, c.Name, c.Forward, c.Backward, held,
			amount(float64(activations)), amount(weights), amount(float64(activations)+weights))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "times of a micro-batch are %s\n", d.from)
	return nil
}

// times says how long ranks are idle.
func (d *dryRun) times(w io.Writer) error {
	fmt.Fprintf(w, "\na step takes %.3g ms at least, of which ranks are idle for %.1f %%\n", d.timing.Span, 100*d.timing.IdleShare())
	if d.cfg.Parallel.Pipeline == 1 {
		return nil
	}
	for place, r := range d.timing.Ranks {
		fmt.Fprintf(w, "place %d: busy %.3g ms, idle %.3g ms\n", place, r.Busy, r.Idle)
	}
	if d.list.Micros() <= 16 && len(d.list) <= 16 {
		fmt.Fprintf(w, "\n%s", d.list.Timeline(d.timing, d.timing.Span/48))
	}
	return nil
}

// links says what goes between ranks in a step.
func (d *dryRun) links(w io.Writer) error {
	p := d.cfg.Parallel
	fmt.Fprintln(w)
	size, kind := 4, p.ActivationWire
	if t := d.activationType(); t != device.F32 {
		size, kind = t.Size(), t.String()
	}
	for stage := range len(d.owners) - 1 {
		here, there := d.owners[stage], d.owners[stage+1]
		if here == there {
			continue
		}
		each := d.pipeline.Cost(stage).Output / 4 * size
		fmt.Fprintf(w, "stage %d to %d, place %d to %d: %d x %s of values down and as much of gradients up in a step (%s)\n",
			stage, stage+1, here, there, d.list.Micros(), amount(float64(each)), kind)
	}
	if d.columns > 1 {
		for stage := range d.owners {
			bytes := d.pipeline.Cost(stage).Parameters
			fmt.Fprintf(w, "stage %d: the gradients of %d columns are summed: %s, of which each rank sends %s (wire %s)\n",
				stage, d.columns, amount(float64(bytes)), d.sent(bytes/4), d.cfg.Fusion.Wire.Name)
		}
	}
	if p.Tensor > 1 {
		bytes, err := d.partialSums()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%d ranks share each layer: of a micro-batch %s of partial results are summed in the forward pass and about as much in the backward pass, of which each rank sends %s\n",
			p.Tensor, amount(bytes), amount(2*bytes*float64(p.Tensor-1)/float64(p.Tensor)))
	}
	if d.world == 1 {
		fmt.Fprintln(w, "nothing goes between ranks")
	}
	return nil
}

// sent says what a rank sends of so many gradients: half of an all-reduce's bytes
// as contributions, half as sums. What powersgd sends depends on the shapes.
func (d *dryRun) sent(values int) string {
	bytes, most := 4*values, ""
	switch f, err := wire.New(wire.Config{Name: d.cfg.Fusion.Wire.Name}); {
	case err != nil:
		most = "less than "
	case f != nil:
		bytes = f.EncodedLen(values)
	}
	return most + amount(2*float64(bytes)*float64(d.columns-1)/float64(d.columns))
}

// activationType is the type of activations on their way between stages.
func (d *dryRun) activationType() device.Type {
	if p := d.precision(); p.Type != device.F32 && !p.Products {
		return p.Type
	}
	return d.activationWire()
}

// ownStates is what a rank holds of the optimizer's state of a stage.
func (d *dryRun) ownStates(bytes int) float64 {
	c := &d.cfg.Collective
	sharesMemory := runtime.GOOS == "linux" && len(d.cfg.Launch.Hosts) == 0 && c.Backend == "cpu" && (c.Transport == "auto" || c.Transport == "shm")
	if d.cfg.Shards(sharesMemory, d.model.ParamCount()) {
		return float64(bytes) / float64(d.columns)
	}
	return float64(bytes)
}

// partialSums returns the bytes that partners sum in a forward pass.
func (d *dryRun) partialSums() (bytes float64, err error) {
	defer nn.Catch(&err)
	var lent device.HostRegions
	defer lent.Close()
	if err := d.lend(d.model, &lent); err != nil {
		return 0, err
	}
	sums := func(n int) float64 {
		before := d.partners.bytes
		d.countPass(d.model, n)
		return float64(d.partners.bytes - before)
	}
	one := sums(1)
	return one + (sums(2)-one)*float64(d.micro-1), nil
}

// stateNames returns what an optimizer keeps for each parameter.
func stateNames(c optim.Config, dev device.Device) (names []string, err error) {
	o, err := optim.New(c)
	if err != nil {
		return nil, err
	}
	p := &nn.Param{Name: "probe.weight", Shape: []int{1}, Decay: true, Value: device.FromF32(make([]float32, 1))}
	if err := o.Init(dev, []optim.Segment{{Param: p, Hi: 1, Grad: device.FromF32(make([]float32, 1))}}); err != nil {
		return nil, err
	}
	err = o.State(func(name string, _ optim.Segment, _ device.Buf) error {
		names = append(names, name)
		return nil
	})
	return names, err
}
