package main

import (
	"runtime"

	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

const bindCores = "launch.bind_cores"

// checkBinding refuses launch.bind_cores: true for ranks of this host that cannot be
// bound, before any is started. apart says that each is a process.
func (j *job) checkBinding(ranks int, apart bool) error {
	if j.config.Launch.BindCores != config.On {
		return nil
	}
	if !apart && ranks > 1 {
		return j.config.Errorf(bindCores, "launch.bind_cores: true binds processes, and with collective.transport: inproc all ranks are one; leave one of the two away")
	}
	each := trainer.Threads(j.config, ranks)
	if has := runtime.NumCPU(); each*ranks > has {
		return j.config.Errorf(bindCores, "launch.bind_cores: true: %v", &launch.TooFewError{Ranks: ranks, Each: each, Processors: has})
	}
	return nil
}

// keepApart binds this rank to processors of its own, if it shall be.
func (j *job) keepApart(place launch.Place) error {
	switch j.config.Launch.BindCores {
	case config.Off:
		return nil
	case 0: // auto: other launchers bind what they start, or leave it to who uses them
		if j.config.Parallel.Pipeline == 1 || place.Source != byLauncher {
			return nil
		}
	}
	threads := trainer.Threads(j.config, place.LocalSize)
	n, err := launch.KeepApart(place, threads)
	switch {
	case err == nil && n > 0 && lookup(j.environ)("GOMAXPROCS") == "":
		runtime.GOMAXPROCS(max(n, threads+besides)) // the runtime would take n
	case err != nil && j.config.Launch.BindCores == config.On:
		return j.config.Errorf(bindCores, "launch.bind_cores: true: %v", err)
	}
	return nil // auto does what it can
}
