package trainer

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"

	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/parallel/schedule"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// What follows needs no ranks: a launcher checks with it what the user has
// written before it starts any.

// readFile reads a CSV file, in front of which some programs put a byte order mark.
func readFile(c *config.Config, key, name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, c.Errorf(key, "%s: the file cannot be read: %v", key, err)
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}

func readSchedule(c *config.Config, text []byte) (schedule.Schedule, error) {
	s, err := schedule.ReadCSV(bytes.NewReader(text))
	if err != nil {
		return nil, c.Errorf("parallel.schedule", "parallel.schedule: %s: %v", c.Parallel.Schedule, err)
	}
	if len(s) == 0 {
		return nil, c.Errorf("parallel.schedule", "parallel.schedule: %s holds no actions", c.Parallel.Schedule)
	}
	return s, checkWritten(c, s)
}

// scheduleFor returns a pipeline's schedule for so many micro-batches; written is
// that of the file, if it is one.
func scheduleFor(c *config.Config, written schedule.Schedule, ranks, micros int) (schedule.Schedule, error) {
	p := c.Parallel
	if written == nil {
		s, err := schedule.New(p.Schedule, ranks, p.VirtualStages, micros)
		if err != nil {
			return nil, c.Errorf("parallel.schedule", "parallel.schedule: %v", err)
		}
		return s, nil
	}
	if has := written.Micros(); has < micros {
		return nil, c.Errorf("parallel.schedule", "parallel.schedule: %s runs %s, and a step has %d here; write a longer one, or choose other data.batch and train.micro_batch",
			p.Schedule, config.Plural(has, "micro-batch"), micros)
	}
	if len(written) != ranks {
		return nil, c.Errorf("parallel.schedule", "parallel.schedule: %s has %s, parallel.pipeline is %d", p.Schedule, config.Plural(len(written), "rank"), ranks)
	}
	return written.First(micros), nil
}

// mostMicros is the micro-batches of a whole step's longest column.
func mostMicros(c *config.Config, micro, columns int) int {
	return (data.Micros(c.Data.Batch, micro) + columns - 1) / columns
}

// checkWritten proves a user's schedule.
func checkWritten(c *config.Config, s schedule.Schedule) error {
	if err := s.Check(max(len(s.Owners()), 1), s.Micros()); err != nil {
		return c.Errorf("parallel.schedule", "parallel.schedule: %s: %v", c.Parallel.Schedule, err)
	}
	return nil
}

// cutModel cuts a model of those blocks as parallel.cuts says, in as many stages
// as the schedule has.
func cutModel(c *config.Config, costs []parallel.BlockCost, s schedule.Schedule) (*parallel.Pipeline, error) {
	loads, err := stageLoads(c, s)
	if err != nil {
		return nil, err
	}
	stages, cuts := len(loads), c.Parallel.Cuts
	if len(cuts) == 0 || config.IsFile(cuts[0]) {
		p, err := parallel.Balance(costs, loads)
		if err != nil {
			return nil, c.Errorf("parallel.pipeline", "parallel.pipeline: %v", err)
		}
		return p, nil
	}
	if len(cuts) != stages-1 {
		return nil, c.Errorf("parallel.cuts", "parallel.cuts makes %d stages; parallel.pipeline: %d with parallel.schedule: %s has %d",
			len(cuts)+1, c.Parallel.Pipeline, c.Parallel.Schedule, stages)
	}
	var at []int
	for _, cut := range cuts {
		block, err := blockAt(costs, cut)
		if err != nil {
			return nil, c.Errorf("parallel.cuts", "parallel.cuts: %v", err)
		}
		at = append(at, block)
	}
	p, err := parallel.NewPipeline(costs, at)
	if err != nil {
		return nil, c.Errorf("parallel.cuts", "parallel.cuts: %v", err)
	}
	p.Loads = loads
	return p, nil
}

// stageLoads tells what the schedule and the configuration ask of each stage.
func stageLoads(c *config.Config, s schedule.Schedule) ([]parallel.StageLoad, error) {
	held := heldBy(s)
	var loads []parallel.StageLoad
	for stage, owner := range s.Owners() {
		loads = append(loads, parallel.StageLoad{Rank: owner, Held: held[stage], Recompute: slices.Contains(c.Parallel.Recompute, stage)})
	}
	if stage := slices.Max(append([]int{0}, c.Parallel.Recompute...)); stage >= len(loads) {
		return nil, c.Errorf("parallel.recompute", "parallel.recompute names stage %d; parallel.pipeline: %d with parallel.schedule: %s has the stages 0 to %d",
			stage, c.Parallel.Pipeline, c.Parallel.Schedule, len(loads)-1)
	}
	return loads, nil
}

// blockAt finds a block by its index or its name.
func blockAt(costs []parallel.BlockCost, cut string) (int, error) {
	for i, c := range costs {
		if c.Name == cut {
			return i, nil
		}
	}
	if i, err := strconv.Atoi(cut); err == nil {
		return i, nil
	}
	names := &parallel.Pipeline{Costs: costs}
	return 0, errors.New("there is no block " + strconv.Quote(cut) + "; the model has\n" + names.Picture())
}

// heldBy counts the micro-batches that each stage holds at most.
func heldBy(s schedule.Schedule) []int {
	held := make([]int, len(s.Owners()))
	now := make([]int, len(held))
	for _, list := range s {
		for _, a := range list {
			switch a.Kind {
			case schedule.Forward:
				now[a.Stage]++
				held[a.Stage] = max(held[a.Stage], now[a.Stage])
			case schedule.Backward, schedule.Weight:
				now[a.Stage]--
			}
		}
	}
	return held
}
