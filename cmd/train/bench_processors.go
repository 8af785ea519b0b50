package main

import (
	"runtime"

	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// keepApart binds a rank to processors of its own if this program has started it and
// there are enough, as the launchers of other systems do. A rank that sleeps is woken
// where the kernel finds room at that moment, which may be another rank's processor,
// and stays there for a while.
func (b *benchmark) keepApart(place launch.Place) error {
	asked := b.config.Launch.BindCores
	if asked == config.Off || asked != config.On && place.Source != byLauncher {
		return nil
	}
	threads := trainer.Threads(b.config, place.LocalSize)
	n, err := launch.KeepApart(place, threads)
	switch {
	case asked == config.On && err != nil:
		return b.config.Errorf(bindCores, "launch.bind_cores: true: %v", err)
	case asked == config.On && n == 0:
		return b.config.Errorf(bindCores, "launch.bind_cores: true: this system binds no processes; leave it at auto")
	case err == nil && n > 0 && lookup(b.environ)("GOMAXPROCS") == "":
		runtime.GOMAXPROCS(max(n, threads+besides))
	}
	return nil
}
