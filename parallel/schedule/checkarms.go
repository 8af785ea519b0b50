package schedule

import "slices"

// arms checks Arm and Wait, which no rank has or every rank.
func (c *checker) arms() error {
	if !c.s.hasArms() {
		return nil
	}
	order := make([][]int, len(c.s))
	anywhere := map[int]bool{}
	for rank, list := range c.s {
		end := Position{rank, len(list)}
		if len(list) == 0 || list[len(list)-1].Kind != Wait {
			return c.s.fault(end, "Wait is missing at the rank's end")
		}
		for i, a := range list {
			switch {
			case a.Kind == Arm && slices.Contains(order[rank], a.Stage):
				return c.s.fault(Position{rank, i}, "stage %d is armed twice", a.Stage)
			case a.Kind == Arm:
				order[rank] = append(order[rank], a.Stage)
				anywhere[a.Stage] = true
				if err := c.armPlace(Position{rank, i}, a.Stage); err != nil {
					return err
				}
			}
		}
		for i, a := range list {
			if a.Kind != Wait && !slices.Contains(order[rank], a.Stage) {
				return c.s.fault(Position{rank, i}, "rank %d runs stage %d and never arms it", rank, a.Stage)
			}
		}
	}
	for stage := range c.stages {
		if !anywhere[stage] {
			return c.s.fault(c.endOf(stage), "stage %d is armed nowhere", stage)
		}
	}
	return c.sameOrder(order)
}

// armPlace checks that at most one action that completes a gradient follows,
// and one if there is any at all.
func (c *checker) armPlace(at Position, stage int) error {
	before, after := 0, 0
	for i, a := range c.s[at.Rank] {
		if a.Stage == stage && a.completesGradient() {
			if i < at.Index {
				before++
			} else {
				after++
			}
		}
	}
	switch {
	case after > 1:
		return c.s.fault(at, "stage %d is armed before %d of its backward passes, want the last only", stage, after)
	case after == 0 && before > 0:
		return c.s.fault(at, "stage %d is armed after its last backward pass", stage)
	}
	return nil
}

func (c *checker) sameOrder(order [][]int) error {
	for rank := range order {
		for other := range rank {
			mine := common(order[rank], order[other])
			theirs := common(order[other], order[rank])
			for i := range mine {
				if mine[i] != theirs[i] {
					at := slices.Index(c.s[rank], Action{Kind: Arm, Stage: mine[i]})
					return c.s.fault(Position{rank, at}, "rank %d arms the stages %v, rank %d arms them in the order %v", rank, mine, other, theirs)
				}
			}
		}
	}
	return nil
}

// common returns the elements of a that b has too, in a's order.
func common(a, b []int) []int {
	var out []int
	for _, v := range a {
		if slices.Contains(b, v) {
			out = append(out, v)
		}
	}
	return out
}
