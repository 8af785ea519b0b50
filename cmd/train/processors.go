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

// keepApart binds this rank to processors of its own, where it is asked for.
func (j *job) keepApart(place launch.Place) error {
	if j.config.Launch.BindCores != config.On {
		return nil
	}
	threads := trainer.Threads(j.config, place.LocalSize)
	n, err := launch.KeepApart(place, threads)
	if err != nil {
		return j.config.Errorf(bindCores, "launch.bind_cores: true: %v", err)
	}
	if n == 0 {
		return j.config.Errorf(bindCores, "launch.bind_cores: true: this system binds no processes; leave it at auto")
	}
	j.keepRoom(n, threads)
	return nil
}

// keepRoom is makeRoom after this process was bound to n processors, which the runtime
// would take for all that there are.
func (j *job) keepRoom(n, threads int) {
	if n > 0 && lookup(j.environ)("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(n, threads+besides))
	}
}

// withoutRoom is on, which gives back the room of a job of one rank after its first
// step, that prepares memory beside the others: what then goes on beside computation is
// short, and for each such thing the runtime would wake further threads, which drive
// the computing ones from their processors.
func (j *job) withoutRoom(on func(trainer.Event), ranks int) func(trainer.Event) {
	if ranks > 1 || lookup(j.environ)("GOMAXPROCS") != "" {
		return on
	}
	over := false
	return func(e trainer.Event) {
		on(e)
		if e.Kind == trainer.Stepped && !over {
			over = true
			runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), max(runtime.NumCPU(), trainer.Threads(j.config, 1))))
		}
	}
}

// handedOver is the size up to which a message between stages is gone when its sender
// computes on: shared memory holds it. Of a larger one the rest needs threads of the
// sender beside the one that computes, which would wait for that one's processor
// although the receiver's is idle.
const handedOver = 448 << 10

// keepStageApart is what launch.bind_cores: auto does, when it is known what goes from
// stage to stage, to ranks that compute on one thread: other launchers bind what they
// start, or leave it to who uses them.
func (j *job) keepStageApart(message int) {
	threads := trainer.Threads(j.config, j.place.LocalSize)
	switch {
	case j.config.Launch.BindCores != 0 || j.place.Source != byLauncher || threads > 1:
	case message <= handedOver:
		if n, err := launch.KeepApart(j.place, threads); err == nil {
			j.keepRoom(n, threads)
		}
	default:
		_ = launch.KeepThreadApart(j.place) // it does what it can
	}
}
