package config

import (
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// IsFile reports whether the value of parallel.schedule or parallel.cuts is the
// name of a CSV file.
func IsFile(value string) bool { return strings.HasSuffix(value, ".csv") }

// checkPipeline finds settings of a pipeline that contradict each other or that
// would be ignored.
func (c *Config) checkPipeline() error {
	p := &c.Parallel
	if !IsFile(p.Schedule) && !slices.Contains(schedule.Names(), p.Schedule) {
		if strings.Contains(p.Schedule, ".") {
			return c.Errorf("parallel.schedule", "parallel.schedule: %s is no name of a schedule, and a file with one ends in .csv", quote(p.Schedule))
		}
		return c.unknownName("parallel.schedule", p.Schedule, schedule.Names())
	}
	if p.Pipeline == 1 {
		for _, key := range []string{"parallel.schedule", "parallel.virtual_stages", "parallel.cuts", "parallel.recompute", "parallel.activation_wire"} {
			if c.wasGivenFor(key, "parallel.pipeline") {
				return c.Errorf(key, "%s is a setting of a pipeline; with parallel.pipeline: 1 it would be ignored", key)
			}
		}
		if c.Launch.Placement == "pipeline-inside" && c.wasGivenFor("launch.placement", "parallel.pipeline") {
			return c.Errorf("launch.placement", "launch.placement: pipeline-inside is for a pipeline; with parallel.pipeline: 1 it would be the same as data-inside")
		}
		return nil
	}
	if c.Train.Deterministic == "world" && p.ActivationWire != "f32" {
		return c.Errorf("parallel.activation_wire", "parallel.activation_wire: %s is refused under train.deterministic: world, because what it rounds depends on where the model is cut; "+
			"use f32, or train.deterministic: off", p.ActivationWire)
	}
	if halves := c.AMP.Level == "O2" || c.AMP.Level == "O3"; halves && p.ActivationWire != "f32" && p.ActivationWire != c.AMP.Type {
		return c.Errorf("parallel.activation_wire", "parallel.activation_wire: %s would be ignored at amp.level: %s, where activations are %s already; leave it at f32", p.ActivationWire, c.AMP.Level, c.AMP.Type)
	}
	if err := c.checkRecompute(); err != nil {
		return err
	}
	if len(p.Cuts) > 1 && slices.ContainsFunc(p.Cuts, IsFile) {
		return c.Errorf("parallel.cuts", "parallel.cuts is %s; it wants either cuts or one CSV file", leafText(c.lookup("parallel.cuts")))
	}
	if IsFile(p.Schedule) { // which says how many stages there are
		if c.wasGivenFor("parallel.virtual_stages", "parallel.schedule") {
			return c.Errorf("parallel.virtual_stages", "parallel.virtual_stages is a setting of parallel.schedule: interleaved, looped-bfs; the file %s says itself which stages a rank has", p.Schedule)
		}
		return nil
	}
	per, err := schedule.StagesPerRank(p.Schedule, p.VirtualStages)
	if err != nil {
		return c.Errorf("parallel.virtual_stages", "parallel.virtual_stages: %v", err)
	}
	if fixed, _ := schedule.StagesPerRank(p.Schedule, p.VirtualStages+1); fixed == per && c.wasGivenFor("parallel.virtual_stages", "parallel.schedule") {
		return c.Errorf("parallel.virtual_stages", "parallel.virtual_stages is a setting of parallel.schedule: interleaved, looped-bfs; with parallel.schedule: %s, which has %s on each rank, it would be ignored",
			p.Schedule, Plural(per, "stage"))
	}
	if n := len(p.Cuts); n > 0 && !IsFile(p.Cuts[0]) && n+1 != p.Pipeline*per {
		return c.Errorf("parallel.cuts", "parallel.cuts makes %d stages; parallel.pipeline: %d with parallel.schedule: %s has %d",
			n+1, p.Pipeline, p.Schedule, p.Pipeline*per)
	}
	return nil
}

func (c *Config) checkRecompute() error {
	stages := c.Parallel.Recompute
	for i, stage := range stages {
		switch {
		case stage < 0:
			return c.Errorf("parallel.recompute", "parallel.recompute holds %d; stages are counted from 0", stage)
		case slices.Contains(stages[:i], stage):
			return c.Errorf("parallel.recompute", "parallel.recompute has stage %d twice", stage)
		}
	}
	if len(stages) > 0 && c.Model.Recompute == "blocks" {
		return c.Errorf("parallel.recompute", "parallel.recompute names stages, and model.recompute: blocks is for all of them; leave one of the two out")
	}
	return nil
}

// wasGivenFor reports whether a key was changed, and no earlier than what it is a
// setting of: what a later source chooses may well leave it without a use.
func (c *Config) wasGivenFor(key, choice string) bool {
	at, given := c.positions[key]
	return given && c.Position(choice).source <= at.source && !c.isDefault(key)
}
