package schedule

import (
	"fmt"
	"strings"
)

// generator is a schedule by its name.
type generator struct {
	name string
	// stages is how many a rank has, given what was asked for.
	stages func(virtual int) int
	make   func(ranks, virtual, micros int) Schedule
}

func one(int) int     { return 1 }
func two(int) int     { return 2 }
func asked(v int) int { return v }

// generators lists the schedules that have a name.
func generators() []generator {
	return []generator{
		{"gpipe", one, func(p, _, m int) Schedule { return GPipe(p, m) }},
		{"1f1b", one, func(p, _, m int) Schedule { return OneForwardOneBackward(p, m) }},
		{"interleaved", asked, Interleaved},
		{"zb-h1", one, func(p, _, m int) Schedule { return ZeroBubbleH1(p, m) }},
		{"zb-v", two, func(p, _, m int) Schedule { return ZeroBubbleV(p, m) }},
		{"looped-bfs", asked, LoopedBreadthFirst},
		{"dualpipe-v", two, func(p, _, m int) Schedule { return DualPipeV(p, m) }},
	}
}

// Names lists the schedules that New makes.
func Names() []string {
	var out []string
	for _, g := range generators() {
		out = append(out, g.name)
	}
	return out
}

func named(name string) (generator, error) {
	for _, g := range generators() {
		if g.name == name {
			return g, nil
		}
	}
	return generator{}, fmt.Errorf("%q is no schedule: want one of %s", name, strings.Join(Names(), ", "))
}

// New makes the schedule of that name for a pipeline of so many ranks and a run
// of so many micro-batches, which may be 0. virtual is how many stages each rank
// has where the schedule leaves that open, at least 1; see StagesPerRank.
func New(name string, ranks, virtual, micros int) (Schedule, error) {
	per, err := StagesPerRank(name, virtual)
	if err != nil {
		return nil, err
	}
	if ranks < 1 || micros < 0 {
		return nil, fmt.Errorf("schedule %s: %d ranks and %d micro-batches, want at least 1 and 0", name, ranks, micros)
	}
	g, err := named(name)
	if err != nil {
		return nil, err
	}
	return g.make(ranks, per, micros), nil
}

// StagesPerRank returns how many stages each rank has under the schedule of that
// name: virtual for interleaved and looped-bfs, 2 for those in the shape of a V,
// else 1.
func StagesPerRank(name string, virtual int) (int, error) {
	g, err := named(name)
	if err != nil {
		return 0, err
	}
	per := g.stages(virtual)
	if per < 1 {
		return 0, fmt.Errorf("schedule %s: %d stages a rank, want at least 1", name, virtual)
	}
	return per, nil
}
