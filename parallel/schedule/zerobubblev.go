package schedule

// ZeroBubbleV gives rank r the stages r and 2p-1-r, so that a micro-batch goes
// down all ranks and up again and its loss is where it began, and cuts backward
// passes in halves (Qi et al. 2024, "controllable memory"). As there, the order
// is found by running it in unit time: a rank takes what it can do, gradients of
// inputs first, then forwards while it holds fewer than 2p parts of
// micro-batches, and weights' gradients where it would be idle.
//
// With equal costs F = I = W and m = p the idle time is p-1 of them, half as
// long as those of ZB-H1 because a stage is half of one there; for other m >= p
// it is up to p-1 more. A rank holds at most min(2m, 2p) of its two stages'
// micro-batches, which are as large as those that 1F1B's first rank holds.
func ZeroBubbleV(ranks, micros int) Schedule {
	var best *vee
	for _, first := range [][2]int{{0, 1}, {1, 0}} {
		v := newVee(ranks, micros, first)
		v.run()
		if best == nil || v.time < best.time {
			best = v
		}
	}
	return WithArms(best.lists, veeStages(ranks))
}

// veeStages is the placement of the stages r and 2·ranks-1-r on rank r.
func veeStages(ranks int) [][]int {
	out := make([][]int, ranks)
	for r := range out {
		out[r] = []int{r, 2*ranks - 1 - r}
	}
	return out
}

// vee is a run in unit time of a model whose stages are placed like a V.
type vee struct {
	ranks, micros int
	first         [2]int // which of a rank's stages has its inputs' gradients made first
	lists         Schedule
	time          int
	held          []int
	// By stage: how many micro-batches have passed, each in order, and how many
	// of them had at the present time's beginning.
	forward, input, weight []int
	forwardThen, inputThen []int
}

func newVee(ranks, micros int, first [2]int) *vee {
	counts := func() []int { return make([]int, 2*ranks) }
	return &vee{
		ranks: ranks, micros: micros, first: first, lists: make(Schedule, ranks), held: make([]int, ranks),
		forward: counts(), input: counts(), weight: counts(), forwardThen: counts(), inputThen: counts(),
	}
}

// run goes on until every rank has done all of its 6·micros actions.
func (v *vee) run() {
	for left := 6 * v.micros * v.ranks; left > 0; v.time++ {
		copy(v.forwardThen, v.forward)
		copy(v.inputThen, v.input)
		for rank := range v.ranks {
			if a, ok := v.choose(rank); ok {
				v.lists[rank] = append(v.lists[rank], a)
				v.count(rank, a)
				left--
			}
		}
	}
}

// choose returns what a rank does next. One place is kept for the way up, so
// that what is held can always be brought to its end.
func (v *vee) choose(rank int) (Action, bool) {
	stages := [2]int{rank, 2*v.ranks - 1 - rank}
	for _, which := range v.first {
		s := stages[which]
		m := v.input[s]
		if m < v.forwardThen[s] && (s == 2*v.ranks-1 || m < v.inputThen[s+1]) {
			return Action{Input, s, m}, true
		}
	}
	if s := stages[1]; v.forward[s] < v.forwardThen[s-1] && v.held[rank] < 2*v.ranks {
		return Action{Forward, s, v.forward[s]}, true
	}
	if s := stages[0]; v.forward[s] < v.micros && (s == 0 || v.forward[s] < v.forwardThen[s-1]) && v.held[rank] < 2*v.ranks-1 {
		return Action{Forward, s, v.forward[s]}, true
	}
	for _, s := range [2]int{stages[1], stages[0]} {
		if v.weight[s] < v.input[s] {
			return Action{Weight, s, v.weight[s]}, true
		}
	}
	return Action{}, false
}

func (v *vee) count(rank int, a Action) {
	switch a.Kind {
	case Forward:
		v.forward[a.Stage]++
		v.held[rank]++
	case Input:
		v.input[a.Stage]++
	default:
		v.weight[a.Stage]++
		v.held[rank]--
	}
}
