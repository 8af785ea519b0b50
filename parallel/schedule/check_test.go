package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneStageIsWhole(t *testing.T) {
	for micros := range 20 {
		require.NoError(t, OneStage(micros).Check(1, micros))
		require.Equal(t, OneStage(micros), OneForwardOneBackward(1, micros))
	}
}

// Closed forms, with unit costs, so that all times are small integers and the
// span is exact. Most hold once the pipeline can fill.
func TestClosedForms(t *testing.T) {
	for _, p := range []int{1, 2, 3, 4, 7, 16, 64} {
		for _, m := range []int{0, 1, 2, 3, 5, 8, 33, 256} {
			for _, g := range generators() {
				for _, virtual := range []int{1, 2, 3} {
					v := g.stages(virtual)
					if v != virtual && virtual != 2 || p*v*m > 64*2*256 {
						continue // the same schedule, or one that takes long
					}
					name := fmt.Sprintf("%s of %d ranks, %d virtual stages, %d micro-batches", g.name, p, v, m)
					s := g.make(p, v, m)
					require.NoError(t, s.Check(p*v, m), name)
					timing, err := s.Simulate(Costs{})
					require.NoError(t, err)
					checkForms(t, g.name, name, timing, p, v, m)
				}
			}
		}
	}
}

func checkForms(t *testing.T, schedule, name string, timing Timing, p, v, m int) {
	for _, rank := range timing.Ranks {
		require.Equal(t, float64(3*m*v), rank.Busy, name)
	}
	if m == 0 {
		return
	}
	busy := float64(3 * m * v)
	idle := timing.Span - busy
	switch {
	case schedule == "gpipe" || schedule == "1f1b" || m >= p && (schedule == "interleaved" || schedule == "looped-bfs"):
		require.Equal(t, float64(3*(p-1)), idle, name)
		require.InDelta(t, float64(p-1)/float64(v*m+p-1), timing.IdleShare(), 1e-12, "one division apart")
	case m >= p && schedule == "zb-h1" || m >= 2*p && schedule == "dualpipe-v" || m == p && schedule == "zb-v":
		require.Equal(t, float64(p-1), idle, name)
	case m >= p:
		require.LessOrEqual(t, idle, float64(2*(p-1)), name)
	}
	for r, rank := range timing.Ranks {
		require.LessOrEqual(t, rank.PeakHeld, peak(schedule, p, v, m, r), "%s, rank %d", name, r)
	}
}

// peak is the most micro-batches that rank r holds, over its stages.
func peak(schedule string, p, v, m, r int) int {
	switch schedule {
	case "1f1b":
		return min(m, p-r)
	case "zb-h1":
		return min(m, p)
	case "zb-v":
		return min(2*m, 2*p)
	case "dualpipe-v":
		return min(2*m, 2*p+1)
	case "interleaved":
		groups := max(m/p, 1)
		return min(m*v, (v-1)*((m+groups-1)/groups)+2*(p-1-r)+1)
	}
	return m * v
}

func TestSimulateCosts(t *testing.T) {
	s, err := Parse("0F0 0F1 0I0 0I1 0W0 0W1\n1F0 1I0 1W0 1F1 1I1 1W1")
	require.NoError(t, err)
	require.NoError(t, s.Check(2, 2))
	timing, err := s.Simulate(Costs{Stages: []StageCost{{Forward: 2, Input: 3, Weight: 1}, {Forward: 4, Input: 5, Weight: 2}}, Hop: 10})
	require.NoError(t, err)
	require.Equal(t, []float64{0, 2, 31, 42, 45, 46}, timing.Ranks[0].Starts)
	require.Equal(t, []float64{12, 16, 21, 23, 27, 32}, timing.Ranks[1].Starts)
	require.Equal(t, 47.0, timing.Span)
	require.Equal(t, 35.0, timing.Ranks[0].Idle)
	require.Equal(t, 2, timing.Ranks[0].PeakHeld)
	require.Equal(t, 1, timing.Ranks[1].PeakHeld)
}

func TestSameArms(t *testing.T) {
	require.NoError(t, SameArms(OneStage(3), OneStage(0), OneStage(1)))
	require.NoError(t, SameArms(GPipe(3, 4), OneForwardOneBackward(3, 0)))
	require.ErrorContains(t, SameArms(GPipe(3, 4), GPipe(2, 4)), "column 1 has 2 ranks, column 0 has 3")
	a, err := Parse("0F0 1F0 1Arm 1B0 0Arm 0B0 Wait")
	require.NoError(t, err)
	b, err := Parse("0Arm 1Arm Wait")
	require.NoError(t, err)
	require.ErrorContains(t, SameArms(a, b), "rank 0, action 0: column 1 arms [0 1], column 0 arms [1 0]")
	require.NoError(t, SameArms(a, WithArms(Schedule{{}}, [][]int{{0, 1}})))
}

// Columns of a data-parallel job have runs of different lengths.
func TestColumnsArmAlike(t *testing.T) {
	for _, g := range generators() {
		for p := 1; p <= 6; p++ {
			var columns []Schedule
			for m := range 20 {
				columns = append(columns, g.make(p, g.stages(2), m))
			}
			require.NoError(t, SameArms(columns...), "%s of %d ranks", g.name, p)
		}
	}
}

func TestFirst(t *testing.T) {
	for _, g := range generators() {
		v := g.stages(2)
		s := g.make(3, v, 7)
		require.Equal(t, 7, s.Micros())
		for m := range 8 {
			require.NoError(t, s.First(m).Check(3*v, m), g.name)
			require.Equal(t, m, s.First(m).Micros())
		}
		require.Equal(t, s, s.First(7))
	}
}

func TestNew(t *testing.T) {
	for _, name := range Names() {
		per, err := StagesPerRank(name, 3)
		require.NoError(t, err)
		s, err := New(name, 4, 3, 5)
		require.NoError(t, err)
		require.NoError(t, s.Check(4*per, 5))
	}
	_, err := New("fastest", 4, 1, 5)
	require.EqualError(t, err, `"fastest" is no schedule: want one of gpipe, 1f1b, interleaved, zb-h1, zb-v, looped-bfs, dualpipe-v`)
	_, err = New("interleaved", 4, 0, 5)
	require.EqualError(t, err, "schedule interleaved: 0 stages a rank, want at least 1")
	_, err = New("1f1b", 0, 1, 5)
	require.EqualError(t, err, "schedule 1f1b: 0 ranks and 5 micro-batches, want at least 1 and 0")
}

func TestCheckRefusesNonsense(t *testing.T) {
	require.EqualError(t, Schedule{}.Check(0, 1), "schedule: 0 stages and 1 micro-batches, want at least 1 and 0")
	require.ErrorContains(t, Schedule{}.Check(1, 1), "0F0 is missing")
	require.ErrorContains(t, Schedule{nil}.Check(1, 1), "0F0 is missing")
}

// twin decides whether a list of computations works by the dumbest means: it
// runs whatever can run until nothing can.
func twin(s Schedule, stages, micros int) bool {
	ran := map[Action]int{}
	backward := func(stage, micro int) int {
		return ran[Action{Backward, stage, micro}] + ran[Action{Input, stage, micro}]
	}
	rankOf := map[int]int{}
	next := make([]int, len(s))
	for moved := true; moved; {
		moved = false
		for rank, list := range s {
			for next[rank] < len(list) {
				a := list[next[rank]]
				if owner, ok := rankOf[a.Stage]; ok && owner != rank {
					return false
				}
				rankOf[a.Stage] = rank
				ok := true
				switch a.Kind {
				case Forward:
					ok = a.Stage == 0 || ran[Action{Forward, a.Stage - 1, a.Micro}] == 1
				case Backward, Input:
					ok = ran[Action{Forward, a.Stage, a.Micro}] == 1 && backward(a.Stage, a.Micro) == 0 &&
						(a.Stage == stages-1 || backward(a.Stage+1, a.Micro) == 1)
				case Weight:
					ok = ran[Action{Input, a.Stage, a.Micro}] == 1
				}
				if !ok {
					break
				}
				ran[a]++
				next[rank]++
				moved = true
			}
		}
	}
	for stage := range stages {
		for micro := range micros {
			if ran[Action{Forward, stage, micro}] != 1 || backward(stage, micro) != 1 ||
				ran[Action{Weight, stage, micro}] != ran[Action{Input, stage, micro}] {
				return false
			}
		}
	}
	for rank := range s {
		if next[rank] < len(s[rank]) {
			return false
		}
	}
	return true
}

// draw returns a schedule at random and its computations alone.
func draw(r *rand.Rand) (s Schedule, stages, micros int) {
	list := generators()
	g := list[r.IntN(len(list))]
	p, v, m := 1+r.IntN(4), g.stages(1+r.IntN(3)), 1+r.IntN(6)
	s = g.make(p, v, m)
	for rank, list := range s {
		s[rank] = slices.DeleteFunc(list, func(a Action) bool { return a.Kind > Weight })
	}
	return s, p * v, m
}

func TestSwapsAreJudgedLikeTheTwinDoes(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 0))
	refused, accepted := 0, 0
	for range 5000 {
		s, stages, m := draw(r)
		list := s[r.IntN(len(s))]
		other := s[r.IntN(len(s))]
		if r.IntN(3) > 0 {
			other = list
		}
		i, j := r.IntN(len(list)), r.IntN(len(other))
		list[i], other[j] = other[j], list[i]
		err := s.Check(stages, m)
		require.Equal(t, twin(s, stages, m), err == nil, "seed %d: %v\n%s", seed, err, s)
		if err == nil {
			accepted++
		} else {
			refused++
		}
	}
	require.Positive(t, accepted)
	require.Positive(t, refused)
}

func BenchmarkCheck(b *testing.B) {
	s := OneForwardOneBackward(64, 256)
	for b.Loop() {
		if err := s.Check(64, 256); err != nil {
			b.Fatal(err)
		}
	}
}
