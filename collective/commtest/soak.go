package commtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// Soak runs every algorithm of every operation at every length that is awkward,
// for numbers of ranks such as "1..17,32", out of place, in place and, where a
// transport shares memory, in memory of the group: short lengths in all types, a
// million elements and three in one. Hosts are one, and two for the algorithms
// that care. All ranks must have the exact result, and random floats, which tell
// orders of addition apart, the plan's simulation to the bit: so all transports
// have the same. No ranks mean a sample of some seconds, without the million. The
// log has how many calls of each rank there were.
//
// All calls of a number of ranks run over one world, whose ranks share the
// vectors and what they must become: the race detector makes anything that is
// computed element by element slow.
func Soak(t *testing.T, connect Connect, ranks string) {
	longest, types := longLength, allTypes()
	if ranks == "" {
		ranks, longest, types = "2,3", 0, []device.Type{device.F32}
	}
	counts, err := parseCounts(ranks)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range counts {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			shared := newVectors(n, max(longest, 4*n+3))
			began, calls := time.Now(), make([]int, n)
			with(t, connect, n, func(w *world) {
				w.patience = 4 * time.Hour
				w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
					s := soak{longest: longest, types: types, shared: shared}
					defer func() { calls[rank] = s.calls }()
					return s.run(ctx, tr)
				})
			})
			for r := range calls {
				if calls[r] != calls[0] {
					t.Errorf("%d calls of rank %d, %d of rank 0", calls[r], r, calls[0])
				}
			}
			t.Logf("%d calls on %d ranks in %.0f s", calls[0], n, time.Since(began).Seconds())
		})
	}
}

// soak is one rank's part.
type soak struct {
	longest int // 0: without it
	types   []device.Type
	shared  *vectors
	calls   int // so far
}

// run tests the algorithms that do not care about hosts, and then those that do
// where ranks lie on two in turn.
func (s *soak) run(ctx context.Context, tr collective.Transport) error {
	hosts := [][]int{{}, {}}
	for r := range tr.Size() {
		hosts[r%2] = append(hosts[r%2], r)
	}
	for _, moved := range []bool{false, true} {
		where := tr
		if moved && tr.Size() > 1 {
			where = rehosted{tr, hosts}
		}
		g := collective.NewGroup(where, collective.GroupConfig{Name: fmt.Sprint("moved ", moved), Timeout: soakTime})
		err := s.algorithms(ctx, g, moved)
		if err == nil {
			err = collective.Barrier(ctx, g)
		}
		if err := errors.Join(err, g.Close()); err != nil {
			return err
		}
	}
	return nil
}

// soakTime is for a call under the race detector of 32 ranks that share two
// processors.
const soakTime = 10 * patience

const (
	longLength = 1_000_003
	mostRanks  = 42 // whose sums of vectors are exact
)

// algorithms tests those that care about hosts, or the others.
func (s *soak) algorithms(ctx context.Context, g *collective.Group, byHost bool) error {
	n := g.Size()
	memory, err := g.Alloc(ctx, device.F32, max(s.longest, 2*(4*n+3)))
	if err != nil {
		return err
	}
	for _, a := range plan.Algorithms() {
		if a.ByHost != byHost {
			continue
		}
		for _, k := range a.Kinds {
			tr := trial{kind: k, algorithm: a.Name, shared: s.shared}
			if k == plan.Barrier {
				if err := s.call(ctx, g, tr); err != nil {
					return err
				}
				continue
			}
			for _, tr.typ = range s.types {
				for _, tr.length = range awkward(n) {
					if err := s.forms(ctx, g, tr, memory); err != nil {
						return err
					}
				}
			}
			if tr.typ, tr.length = device.F32, s.longest; tr.length > 0 {
				if err := s.forms(ctx, g, tr, memory); err != nil {
					return err
				}
			}
			s.calls++
			if err := simulate(ctx, g, a, k, 5*n+s.longest/17, s.shared); err != nil {
				return fmt.Errorf("%v by %s on %d ranks: %w", k, a.Name, n, err)
			}
		}
	}
	return nil
}

// awkward lists lengths that n ranks have parts of no elements of, or of uneven
// ones.
func awkward(n int) []int {
	lengths := []int{0, 1, n - 1, n, n + 1, 4*n + 3}
	slices.Sort(lengths)
	return slices.Compact(lengths)
}

// forms runs a call out of place and in place; types that are not float32, which
// differ in their arithmetic only, by turns. The long one differs from short ones
// by its messages only: it is in place where the group's memory saves them.
func (s *soak) forms(ctx context.Context, g *collective.Group, tr trial, memory device.Buf) error {
	tr.root = tr.length % g.Size()
	long, turn := tr.length == longLength, (int(tr.typ)+int(tr.kind)+tr.length)%2
	for i, inPlace := range []bool{false, true} {
		if long && inPlace || !long && tr.typ != device.F32 && turn != i {
			continue
		}
		tr.inPlace = inPlace
		if err := s.call(ctx, g, tr); err != nil {
			return err
		}
	}
	if tr.algorithm != "direct" || tr.kind == plan.AllToAll {
		return nil
	}
	tr.inPlace, tr.memory = true, memory
	return s.call(ctx, g, tr)
}

func (s *soak) call(ctx context.Context, g *collective.Group, tr trial) error {
	s.calls++
	return tr.run(ctx, g)
}

// parseCounts reads numbers of ranks such as "1..17,32".
func parseCounts(text string) (counts []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		low, high, span := strings.Cut(part, "..")
		if !span {
			high = low
		}
		first, err := strconv.Atoi(low)
		if err != nil {
			return nil, fmt.Errorf("%q are no numbers of ranks such as 1..17,32, of at most %d", text, mostRanks)
		}
		last, err := strconv.Atoi(high)
		if err != nil || first < 1 || last < first || last > mostRanks {
			return nil, fmt.Errorf("%q are no numbers of ranks such as 1..17,32, of at most %d", text, mostRanks)
		}
		for n := first; n <= last; n++ {
			counts = append(counts, n)
		}
	}
	return counts, nil
}
