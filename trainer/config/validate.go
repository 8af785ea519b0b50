package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/gradfusion/gradfusion/collective/faulty"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/models"
)

// MostProcesses and mostThreads keep a mistyped number from exhausting the host.
const (
	MostProcesses = 1024
	mostThreads   = 1024
)

// Validate checks the settings against their ranges, against each other and
// against what this version has. It also fills in defaults that depend on
// other settings. The error is an *Error; it names the key and its place.
func (c *Config) Validate() error {
	for _, check := range []func() error{
		c.checkRanges, c.fillOptim, c.checkMade, c.checkLists, c.yieldWire, c.checkTogether, c.checkLocalSGD, c.checkSyncBatchNorm, c.checkSparse, c.checkPipeline, c.checkTensor, c.checkNames, c.checkWire, c.checkOverlap, c.checkPack, c.checkAscend, c.checkSamples, c.checkBelonging, c.checkSupported,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// lookup returns the value of a dotted key that exists.
func (c *Config) lookup(key string) reflect.Value {
	v := reflect.ValueOf(c).Elem()
	for name := range strings.SplitSeq(key, ".") {
		field, ok := fieldOf(v, name)
		if !ok {
			panic(fmt.Sprintf("config: no key %q", key))
		}
		v = field
	}
	return v
}

// checkMade checks the sizes of made-up data and of a gpt, where 0 was not
// written but means the default, and puts the defaults in.
func (c *Config) checkMade() error {
	for _, key := range []string{"data.channels", "data.height", "data.width", "data.classes", "data.vocabulary", "data.train_samples", "data.test_samples",
		"model.layers", "model.heads", "model.width", "model.context"} {
		if _, given := c.positions[key]; given && c.lookup(key).Int() < 1 {
			return c.Errorf(key, "%s is %d; it has to be at least 1", key, c.lookup(key).Int())
		}
	}
	c.Data = c.Data.WithDefaults()
	if m := &c.Model; models.TakesText(m.Name) {
		with := models.Config{Name: m.Name, Layers: m.Layers, Heads: m.Heads, Features: m.Width}.WithDefaults()
		m.Layers, m.Heads, m.Width, m.Context = with.Layers, with.Heads, with.Features, cmp.Or(m.Context, c.Data.Context)
	}
	return nil
}

// checkLists checks what is no single number or name.
func (c *Config) checkLists() error {
	if _, err := data.ParseAugment(c.Data.Augment); err != nil {
		return c.unknownName("data.augment", c.Data.Augment, []string{"none", "flip", "crop-flip"})
	}
	if _, err := faulty.ParseAll(c.Collective.Faults); err != nil {
		return c.Errorf("collective.faults", "collective.faults: %v", err)
	}
	if err := c.checkConnections(); err != nil {
		return err
	}
	for _, n := range c.Model.Hidden {
		if n < 1 {
			return c.Errorf("model.hidden", "model.hidden holds %d; a layer has at least 1 unit", n)
		}
	}
	for _, n := range c.Model.Stages {
		if n < 1 {
			return c.Errorf("model.stages", "model.stages holds %d; a stage has at least 1 block", n)
		}
	}
	before := 0.0
	for _, at := range c.Optim.Schedule.Milestones {
		if at <= before {
			return c.Errorf("optim.schedule.milestones", "optim.schedule.milestones have to ascend from above 0, such as [0.5, 0.75]")
		}
		before = at
	}
	if s := c.Optim.Schedule; s.Name == "multistep" && len(s.Milestones) == 0 {
		return c.Errorf("optim.schedule.name", "optim.schedule: multistep wants optim.schedule.milestones, such as [0.5, 0.75]")
	}
	if p := c.Launch.NProc; p.Low < 1 || p.Low > p.High {
		return c.Errorf("launch.nproc", "launch.nproc is %s; it has to be a whole number of at least 1", p)
	} else if p.High > MostProcesses {
		return c.Errorf("launch.nproc", "launch.nproc is %s; one host starts at most %d", p, MostProcesses)
	}
	if n := c.Compute.Threads; n > mostThreads {
		return c.Errorf("compute.threads", "compute.threads is %d; it has to be at most %d", int(n), mostThreads)
	}
	if c.Launch.Rendezvous != "auto" && !strings.Contains(c.Launch.Rendezvous, ":") {
		return c.Errorf("launch.rendezvous", "launch.rendezvous is %s; it wants auto or an address such as 10.0.0.1:29500", quote(c.Launch.Rendezvous))
	}
	for _, n := range []struct {
		key string
		v   Count
	}{{"train.micro_batch", c.Train.MicroBatch}, {"train.accumulate", c.Train.Accumulate}, {"parallel.data", c.Parallel.Data}, {"compute.threads", c.Compute.Threads}} {
		if n.v < 0 {
			return c.Errorf(n.key, "%s is %d; it has to be auto or at least 1", n.key, int(n.v))
		}
	}
	return nil
}

// checkSamples finds a model and a data set of different kinds.
func (c *Config) checkSamples() error {
	switch {
	case models.TakesText(c.Model.Name) && !data.IsText(c.Data.Name):
		return c.Errorf("data.name", "model.name: %s reads text, but data.name: %s has images; the texts are %s",
			c.Model.Name, c.Data.Name, strings.ReplaceAll(setNames(true), " ", ", "))
	case !models.TakesText(c.Model.Name) && data.IsText(c.Data.Name):
		return c.Errorf("data.name", "data.name: %s is a text, which model.name: %s cannot read; gpt can", c.Data.Name, c.Model.Name)
	}
	return nil
}

// checkTogether finds settings that contradict each other for every number of
// ranks; Batches finds the rest.
func (c *Config) checkTogether() error {
	batch, micro, accumulate := c.Data.Batch, int(c.Train.MicroBatch), int(c.Train.Accumulate)
	switch {
	case c.Train.Epochs == 0 && c.Train.Steps == 0:
		return c.Errorf("train.epochs", "train.epochs and train.steps are both 0, so there is nothing to train")
	case c.Parallel.SyncBatchNorm && c.Train.Deterministic == "world":
		return c.Errorf("parallel.sync_batchnorm", "parallel.sync_batchnorm is refused under train.deterministic: world, "+
			"where the statistics belong to the micro-batch, whoever computes it; turn one of the two off")
	case c.Train.Deterministic == "world" && (c.Compute.Kernels == "openblas" || c.Compute.Kernels == "onednn"):
		return c.Errorf("compute.kernels", "compute.kernels: %s is refused under train.deterministic: world, because its sums may depend on the number of threads; "+
			"turn one of the two off", c.Compute.Kernels)
	case micro > batch:
		return c.Errorf("train.micro_batch", "train.micro_batch is %d, but a step has only data.batch = %d samples", micro, batch)
	case accumulate > batch:
		return c.Errorf("train.accumulate", "train.accumulate is %d, but a step has only data.batch = %d samples", accumulate, batch)
	case micro > 0 && accumulate > 0 && batch%(micro*accumulate) != 0:
		return c.Errorf("train.accumulate", "train.micro_batch = %d contradicts train.accumulate = %d: data.batch = %d is no multiple of %d x %d; give one of the two",
			micro, accumulate, batch, micro, accumulate)
	case c.Fusion.Wire.Name != "f32" && c.Collective.Algorithm != "auto" && c.Fusion.Wire.Name != "":
		return c.Errorf("collective.algorithm", "collective.algorithm: %s does not go with fusion.wire: %s, which has an algorithm of its own "+
			"(all-to-all, sum by the owner, all-gather); leave the algorithm at auto", c.Collective.Algorithm, c.Fusion.Wire.Name)
	}
	return nil
}

// checkBelonging finds a setting that was written for something else than was
// chosen: stem for an mlp. It is no mistake when a later source than the
// setting's chooses otherwise.
func (c *Config) checkBelonging() error {
	for _, key := range Keys() {
		at, given := c.positions[key]
		if choice := c.belongsTo(key); given && choice != "" {
			if chosen := c.Position(choice[:strings.IndexByte(choice, ':')]); chosen.source > at.source {
				continue
			}
			return c.Errorf(key, "%s is a setting of %s; with %s it would be ignored", key, choice, c.chosen(choice))
		}
	}
	return nil
}

// chosen is the setting that a choice speaks of, as it is now.
func (c *Config) chosen(choice string) string {
	key, _, _ := strings.Cut(choice, ":")
	return key + ": " + leafText(c.lookup(key))
}
