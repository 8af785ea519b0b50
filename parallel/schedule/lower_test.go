package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLowerIsGolden(t *testing.T) {
	var text strings.Builder
	for _, g := range generators() {
		s := g.make(2, g.stages(2), 3)
		lowered, err := Lower(s)
		require.NoError(t, err)
		fmt.Fprintf(&text, "%s\n%s\n", g.name, lowered.Grid())
	}
	lowered, err := Lower(Forwards([]int{0, 1, 1, 0}, 3))
	require.NoError(t, err)
	fmt.Fprintf(&text, "forward only\n%s", lowered.Grid())
	golden(t, "lowered.txt", text.String())
}

// strip is a lowered list without what Lower adds.
func strip(s Schedule) Schedule {
	out := make(Schedule, len(s))
	for rank, list := range s {
		out[rank] = slices.DeleteFunc(slices.Clone(list), func(a Action) bool { return a.Kind > Weight })
	}
	return out
}

// The dumb twin of where messages go: every value that a stage hands to another
// rank has one send behind what makes it and one receive before what needs it.
func TestLowerAddsEveryMessage(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		s, stages, micros := draw(r)
		lowered, err := Lower(s)
		require.NoError(t, err)
		require.Equal(t, s, strip(lowered), "seed %d", seed)
		owners := s.Owners()
		index := map[Action]Position{}
		for rank, list := range lowered {
			for i, a := range list {
				index[product(a)] = Position{rank, i}
			}
		}
		sends := 0
		for stage := range stages - 1 {
			for micro := range micros {
				for _, move := range [][4]Action{
					{{Forward, stage, micro}, {SendForward, stage, micro}, {RecvForward, stage + 1, micro}, {Forward, stage + 1, micro}},
					{{Input, stage + 1, micro}, {SendBackward, stage + 1, micro}, {RecvBackward, stage, micro}, {Input, stage, micro}},
				} {
					if owners[stage] == owners[stage+1] {
						require.NotContains(t, index, move[1])
						require.NotContains(t, index, move[2])
						continue
					}
					sends++
					require.Equal(t, index[move[0]].Rank, index[move[1]].Rank)
					require.Less(t, index[move[0]].Index, index[move[1]].Index)
					require.Equal(t, index[move[2]].Rank, index[move[3]].Rank)
					require.Less(t, index[move[2]].Index, index[move[3]].Index)
				}
			}
		}
		for _, list := range lowered {
			for _, a := range list {
				if a.Kind >= SendForward {
					sends--
				}
			}
		}
		require.Equal(t, 0, sends+countSends(lowered), "seed %d: as many receives as sends, and no others", seed)
	}
}

func countSends(s Schedule) int {
	n := 0
	for _, list := range s {
		for _, a := range list {
			if a.Kind == SendForward || a.Kind == SendBackward {
				n++
			}
		}
	}
	return n
}

// canMove decides by the dumbest means whether messages arrive: it runs what can
// run until nothing can.
func canMove(s Schedule, blocking bool) bool {
	owners := s.Owners()
	next := make([]int, len(s))
	queues := map[[2]int][]Action{}
	for moved := true; moved; {
		moved = false
		for rank, list := range s {
			if next[rank] == len(list) {
				continue
			}
			a := list[next[rank]]
			peer := Peer(owners, a)
			switch {
			case peer < 0:
				next[rank]++
			case blocking:
				if next[peer] == len(s[peer]) || s[peer][next[peer]] != otherEnd(a) {
					continue
				}
				next[rank]++
				next[peer]++
			case a.Kind == SendForward || a.Kind == SendBackward:
				queues[[2]int{rank, peer}] = append(queues[[2]int{rank, peer}], a)
				next[rank]++
			default:
				queue := queues[[2]int{peer, rank}]
				if len(queue) == 0 || queue[0] != otherEnd(a) {
					continue
				}
				queues[[2]int{peer, rank}] = queue[1:]
				next[rank]++
			}
			moved = true
		}
	}
	for rank, list := range s {
		if next[rank] < len(list) {
			return false
		}
	}
	return true
}

// Swapping two actions of a lowered schedule is accepted just when the twin
// moves everything and a message stays on its side of what it belongs to.
func TestCheckLoweredAgreesWithTheTwin(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	refused, accepted := 0, 0
	for range 3000 {
		s, _, _ := draw(r)
		lowered, err := Lower(s)
		require.NoError(t, err)
		list := lowered[r.IntN(len(lowered))]
		i, j := r.IntN(len(list)), r.IntN(len(list))
		list[i], list[j] = list[j], list[i]
		err = lowered.CheckLowered()
		right := canMove(lowered, true) && canMove(lowered, false) && keepsSides(lowered)
		require.Equal(t, right, err == nil, "seed %d: %v\n%s", seed, err, lowered)
		if err == nil {
			accepted++
		} else {
			refused++
		}
	}
	require.Positive(t, accepted)
	require.Positive(t, refused)
}

func keepsSides(s Schedule) bool {
	for _, list := range s {
		at := map[Action]int{}
		for i, a := range list {
			at[product(a)] = i
		}
		for a, i := range at {
			var earlier Action
			switch a.Kind {
			case Forward:
				earlier = Action{RecvForward, a.Stage, a.Micro}
			case Input:
				earlier = Action{RecvBackward, a.Stage, a.Micro}
			case SendForward:
				earlier = Action{Forward, a.Stage, a.Micro}
			case SendBackward:
				earlier = Action{Input, a.Stage, a.Micro}
			default:
				continue
			}
			if before, ok := at[earlier]; ok && before > i {
				return false
			}
		}
	}
	return true
}

func TestCheckLoweredShowsThePicture(t *testing.T) {
	var text strings.Builder
	for _, list := range []string{
		"0F0 0SendF0 0RecvB0 0B0\n1F0 1B0 1SendB0",
		"0F0 0RecvB0 0B0\n1RecvF0 1F0 1B0 1SendB0",
		"0SendF0 0F0 0RecvB0 0B0\n1RecvF0 1F0 1B0 1SendB0",
		"0F0 0SendF0 0B0 0RecvB0\n1RecvF0 1F0 1B0 1SendB0",
		"0F0 0SendF0 0SendF0 0RecvB0 0B0\n1RecvF0 1F0 1B0 1SendB0",
		"0F0 0SendF0 0SendF1\n1RecvF0 1RecvF1 1F0",
		"0F0 0SendF0 0F1 0SendF1\n1RecvF1 1F1 1RecvF0 1F0",
		"0F0 0SendF0 0RecvB1 0B1\n1F1 1B1 1SendB1 1RecvF0 1F0",
		"0F0 1F0 0SendF0",
		"0F0 0SendF0\n1F0 0RecvF0",
	} {
		s, err := Parse(list)
		require.NoError(t, err)
		err = s.CheckLowered()
		require.Error(t, err, list)
		fmt.Fprintf(&text, "%q\n%s\n\n", list, strings.TrimRight(err.Error(), "\n"))
	}
	golden(t, "loweringerrors.txt", text.String())
}

func TestBatches(t *testing.T) {
	s, err := Lower(OneForwardOneBackward(4, 8))
	require.NoError(t, err)
	owners := s.Owners()
	paired := 0
	for _, list := range s {
		for i := 0; i < len(list); {
			end := BatchEnd(owners, list, i)
			for _, a := range list[i:end] {
				require.Equal(t, Peer(owners, list[i]), Peer(owners, a))
			}
			if end-i == 2 && list[i].Kind == SendForward && list[i+1].Kind == RecvBackward {
				paired++
			}
			i = end
		}
	}
	require.Positive(t, paired, "a forward going down while a gradient comes up is one batch")
}
