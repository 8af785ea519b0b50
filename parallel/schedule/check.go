package schedule

import "fmt"

// Check proves that s trains stages stages on micros micro-batches: every
// micro-batch passes every stage once in each direction, both on one rank,
// forward before backward, input half before weight half; no rank waits for
// ever; either no rank arms, or each rank arms each of its stages once, before
// the last action that completes a gradient of the stage and after the one
// before it, and ends with Wait; ranks that share stages arm those in the same
// order. A fault is an *Error that shows where.
//
// Sends and receives follow from the computations and are no part of s; what
// Lower adds passes CheckLowered.
func (s Schedule) Check(stages, micros int) error {
	if stages < 1 || micros < 0 {
		return fmt.Errorf("schedule: %d stages and %d micro-batches, want at least 1 and 0", stages, micros)
	}
	c := &checker{s: s, stages: stages, micros: micros, seen: newPlaces(s)}
	for rank, list := range s {
		for i, a := range list {
			if err := c.visit(Position{rank, i}, a); err != nil {
				return err
			}
		}
	}
	if err := c.complete(); err != nil {
		return err
	}
	if err := c.arms(); err != nil {
		return err
	}
	lowered, err := Lower(s)
	if err != nil {
		return err
	}
	return lowered.CheckLowered()
}

// SameArms proves that the columns of a data-parallel job, each with the
// schedule of its own run of micro-batches, arm alike: rank r of every column
// arms the same stages in the same order, so the calls of their common groups
// match.
func SameArms(columns ...Schedule) error {
	for c, s := range columns {
		if len(s) != len(columns[0]) {
			return fmt.Errorf("schedule: column %d has %d ranks, column 0 has %d", c, len(s), len(columns[0]))
		}
		for rank := range s {
			want := armsOf(columns[0][rank])
			got := armsOf(s[rank])
			for i := range max(len(want), len(got)) {
				if i < len(want) && i < len(got) && s[rank][got[i]].Stage == columns[0][rank][want[i]].Stage {
					continue
				}
				at := Position{rank, len(s[rank])}
				if i < len(got) {
					at.Index = got[i]
				}
				return s.fault(at, "column %d arms %v, column 0 arms %v", c, stagesAt(s[rank], got), stagesAt(columns[0][rank], want))
			}
		}
	}
	return nil
}

// armsOf returns the indices of a list's Arm actions.
func armsOf(list []Action) []int {
	var out []int
	for i, a := range list {
		if a.Kind == Arm {
			out = append(out, i)
		}
	}
	return out
}

func stagesAt(list []Action, at []int) []int {
	out := []int{}
	for _, i := range at {
		out = append(out, list[i].Stage)
	}
	return out
}

type checker struct {
	s              Schedule
	stages, micros int
	seen           *places
}

// visit checks what an action and those before it tell.
func (c *checker) visit(at Position, a Action) error {
	switch {
	case a.Kind >= SendForward:
		return c.s.fault(at, "%s: sends and receives follow from the computations and are not checked", a)
	case a.Kind == Wait:
		if at.Index != len(c.s[at.Rank])-1 {
			return c.s.fault(at, "Wait is not the last action of the rank")
		}
		return nil
	case a.Stage < 0 || a.Stage >= c.stages:
		return c.s.fault(at, "%s: there is no stage %d, only %d", a, a.Stage, c.stages)
	case a.Kind == Arm:
		return nil
	case a.Micro < 0 || a.Micro >= c.micros:
		return c.s.fault(at, "%s: there is no micro-batch %d, only %d", a, a.Micro, c.micros)
	}
	if before, ok := c.seen.of(a); ok {
		return c.s.fault(at, "%s stands at rank %d, action %d already", a, before.Rank, before.Index)
	}
	c.seen.put(a, at)
	if need, any := within(a); any {
		if before, ok := c.seen.of(need); !ok || before.Rank != at.Rank {
			return c.s.fault(at, "%s without %s before it on the same rank", a, need)
		}
	}
	if whole := (Action{Backward, a.Stage, a.Micro}); a.Kind == Input || a.Kind == Backward {
		other := whole
		if a.Kind == Backward {
			other.Kind = Input
		}
		if before, ok := c.seen.of(other); ok {
			return c.s.fault(at, "%s, but rank %d runs %s", a, before.Rank, other)
		}
	}
	return nil
}

// within tells what must stand before a on its rank, if anything.
func within(a Action) (need Action, any bool) {
	switch a.Kind {
	case Backward, Input:
		return Action{Forward, a.Stage, a.Micro}, true
	case Weight:
		return Action{Input, a.Stage, a.Micro}, true
	}
	return need, false
}

// complete checks that nothing is missing. The arrow points behind the end of
// the rank that has most to do with what is.
func (c *checker) complete() error {
	for micro := range c.micros {
		for stage := range c.stages {
			forward, ok := c.seen.of(Action{Forward, stage, micro})
			if !ok {
				return c.s.fault(c.endOf(stage), "%s is missing", Action{Forward, stage, micro})
			}
			if _, ok := c.seen.of(Action{Backward, stage, micro}); ok {
				continue
			}
			input, ok := c.seen.of(Action{Input, stage, micro})
			if !ok {
				return c.s.fault(c.behind(forward), "%s is missing", Action{Backward, stage, micro})
			}
			if _, ok := c.seen.of(Action{Weight, stage, micro}); !ok {
				return c.s.fault(c.behind(input), "%s is missing", Action{Weight, stage, micro})
			}
		}
	}
	return nil
}

func (c *checker) behind(at Position) Position { return Position{at.Rank, len(c.s[at.Rank])} }

// endOf returns the end of the first rank that runs something of the stage, or
// of the first rank.
func (c *checker) endOf(stage int) Position {
	for rank, list := range c.s {
		for _, a := range list {
			if a.Kind != Wait && a.Stage == stage {
				return Position{rank, len(list)}
			}
		}
	}
	if len(c.s) == 0 {
		return Position{}
	}
	return Position{0, len(c.s[0])}
}
