package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/faulty"
	"github.com/gradfusion/gradfusion/collective/monitor"
	"github.com/gradfusion/gradfusion/observe"
)

// watch begins to look after the other ranks.
func (j *job) watch(ctx context.Context, transport collective.Transport, show *display, events *observe.Recorder) (*monitor.Monitor, error) {
	c := j.config.Collective
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	stall := c.Stall
	if stall == 0 {
		stall = -1 // none
	}
	return monitor.Start(ctx, monitor.Config{
		Rank: transport.Rank(), Size: transport.Size(), Store: j.table, Namespace: j.place.Job,
		Heartbeat: c.Heartbeat, Stall: stall, Events: events, On: show.found,
	})
}

// inject gives a rank the faults that collective.faults wants. kill ends the
// rank; nil closes its transport.
func (j *job) inject(t collective.Transport, kill func()) collective.Transport {
	faults, err := faulty.ParseAll(j.config.Collective.Faults)
	if err != nil {
		panic(err) // the configuration was checked
	}
	return faulty.Wrap(t, faulty.Config{Faults: faults, Kill: kill})
}

// dieAtOnce is the end of a process without a last word.
func dieAtOnce() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		os.Exit(exitNetwork)
	}
	select {}
}

// halted tells of rank 0 what its Monitor cannot tell: that it is stopped. Rank
// 0 tells of the others.
func (j *job) halted(rank, process int, stopped bool) {
	if rank != 0 {
		return
	}
	text := fmt.Sprintf("train: rank 0 (pid %d) is stopped by a signal; calls wait for it until collective.timeout, %v; \"kill -CONT %d\" lets it go on",
		process, j.config.Collective.Timeout, process)
	if !stopped {
		text = fmt.Sprintf("train: rank 0 (pid %d) goes on", process)
	}
	io.WriteString(j.stderr, wrap(text, width))
}
