package schedule

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneStageIsWhole(t *testing.T) {
	for micros := range 20 {
		require.NoError(t, OneStage(micros).Check(1, micros))
		require.Equal(t, OneStage(micros), OneForwardOneBackward(1, micros))
	}
}

// Closed forms: with forward 1 and backward 2 the idle share of GPipe and 1F1B
// is (p-1)/(m+p-1); GPipe holds m micro-batches, 1F1B min(m, p-r) on rank r.
// All times are small integers, so the span is exact.
func TestClosedForms(t *testing.T) {
	for _, g := range generators {
		for _, p := range []int{1, 2, 3, 4, 7, 16, 64} {
			for _, m := range []int{1, 2, 3, 5, 8, 33, 256} {
				s := g.make(p, m)
				require.NoError(t, s.Check(p, m), "%s %d %d", g.name, p, m)
				timing, err := s.Simulate(Costs{})
				require.NoError(t, err)
				require.Equal(t, float64(3*(m+p-1)), timing.Span, "%s %d %d", g.name, p, m)
				require.InDelta(t, float64(p-1)/float64(m+p-1), timing.IdleShare(), 1e-12, "one division apart")
				for r, rank := range timing.Ranks {
					require.Equal(t, float64(3*m), rank.Busy)
					want := m
					if g.name == "1f1b" {
						want = min(m, p-r)
					}
					require.Equal(t, want, rank.PeakHeld, "%s %d %d rank %d", g.name, p, m, r)
				}
			}
		}
	}
}

func TestSimulateCosts(t *testing.T) {
	s, err := Parse("0F0 0F1 0I0 0I1 0W0 0W1\n1F0 1I0 1W0 1F1 1I1 1W1")
	require.NoError(t, err)
	require.NoError(t, s.Check(2, 2))
	timing, err := s.Simulate(Costs{Stages: []StageCost{{2, 3, 1}, {4, 5, 2}}, Hop: 10})
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

func TestCheckRefusesNonsense(t *testing.T) {
	require.EqualError(t, Schedule{}.Check(0, 1), "schedule: 0 stages and 1 micro-batches, want at least 1 and 0")
	require.ErrorContains(t, Schedule{}.Check(1, 1), "0F0 is missing")
	require.ErrorContains(t, Schedule{nil}.Check(1, 1), "0F0 is missing")
}

// twin decides whether a list of computations works by the dumbest means: it
// runs whatever can run until nothing can, in lists of any order.
func twin(s Schedule, stages, micros int) bool {
	ran := map[Action]int{}
	next := make([]int, len(s))
	for moved := true; moved; {
		moved = false
		for rank, list := range s {
			for next[rank] < len(list) {
				a := list[next[rank]]
				ok := true
				if a.Kind == Forward && a.Stage > 0 {
					ok = ran[Action{Forward, a.Stage - 1, a.Micro}] == 1
				}
				if a.Kind == Backward {
					ok = ran[Action{Forward, a.Stage, a.Micro}] == 1
					if a.Stage < stages-1 {
						ok = ok && ran[Action{Backward, a.Stage + 1, a.Micro}] == 1
					}
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
	for rank := range s {
		if next[rank] < len(s[rank]) {
			return false
		}
	}
	for stage := range stages {
		for micro := range micros {
			if ran[Action{Forward, stage, micro}] != 1 || ran[Action{Backward, stage, micro}] != 1 {
				return false
			}
		}
	}
	return true
}

func TestSwapsAreJudgedLikeTheTwinDoes(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 0))
	refused, accepted := 0, 0
	for range 3000 {
		p, m := 1+r.IntN(4), 1+r.IntN(5)
		s := generators[r.IntN(len(generators))].make(p, m)
		for rank, list := range s { // computations only
			var kept []Action
			for _, a := range list {
				if a.Kind <= Weight {
					kept = append(kept, a)
				}
			}
			s[rank] = kept
		}
		list := s[r.IntN(p)]
		i, j := r.IntN(len(list)), r.IntN(len(list))
		list[i], list[j] = list[j], list[i]
		err := s.Check(p, m)
		require.Equal(t, twin(s, p, m), err == nil, "seed %d: %v\n%s", seed, err, s)
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
