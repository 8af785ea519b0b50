package commtest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// Soak runs every algorithm of every operation at every length that is awkward,
// up to a million elements and three, for numbers of ranks such as "1..17,32",
// out of place and in place, on one host and on two. All ranks must have the
// exact result, and random floats, which tell orders of addition apart, the
// plan's simulation to the bit: so all transports have the same. It takes hours
// for all; no ranks mean a sample of some seconds, without the million.
func Soak(t *testing.T, connect Connect, ranks string) {
	longest := longLength
	if ranks == "" {
		ranks, longest = "2,3", 0
	}
	counts, err := parseCounts(ranks)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range counts {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			known := &sums{}
			with(t, connect, n, func(w *world) {
				w.patience = 4 * time.Hour
				w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
					hosts := [][]int{{}, {}}
					for r := range n {
						hosts[r%2] = append(hosts[r%2], r)
					}
					for _, moved := range []bool{false, true} {
						where := tr
						if moved && n > 1 {
							where = rehosted{tr, hosts}
						}
						g := collective.NewGroup(where, collective.GroupConfig{Name: fmt.Sprint("moved ", moved), Timeout: soakTime})
						if err := soak(ctx, g, moved, longest, known); err != nil {
							return err
						}
						if err := collective.Barrier(ctx, g); err != nil {
							return err
						}
						if err := g.Close(); err != nil {
							return err
						}
					}
					return nil
				})
			})
		})
	}
}

// soakTime is for a call under the race detector of 32 ranks that share two
// processors.
const soakTime = 10 * patience

const longLength = 1_000_003

// soak tests the algorithms that care about hosts where those were moved, and the
// others where they were not.
func soak(ctx context.Context, g *collective.Group, moved bool, longest int, known *sums) error {
	n := g.Size()
	for _, a := range plan.Algorithms() {
		if a.ByHost != moved {
			continue
		}
		for _, k := range a.Kinds {
			for _, length := range []int{0, 1, n - 1, n, n + 1, 4*n + 3, longest} {
				for _, inPlace := range []bool{false, true} {
					if inPlace && length == longLength {
						continue // what differs does so at all lengths
					}
					tr := trial{kind: k, typ: device.F32, length: length, root: length % n, algorithm: a.Name, inPlace: inPlace, known: known}
					if err := tr.run(ctx, g); err != nil {
						return err
					}
				}
			}
			if err := simulate(ctx, g, a, k, 5*n+longest/17); err != nil {
				return fmt.Errorf("%v by %s on %d ranks: %w", k, a.Name, n, err)
			}
		}
	}
	return nil
}

// sums keeps the reductions that ranks of one process would each have to make.
type sums struct {
	mu     sync.Mutex
	ranks  int
	values map[int][]float64 // of f32, by length
}

// of returns what make does for vectors of a length, which it must not change.
func (s *sums) of(ranks, length int, make func() []float64) []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ranks != ranks {
		s.ranks, s.values = ranks, map[int][]float64{}
	}
	v, ok := s.values[length]
	if !ok {
		v = make()
		s.values[length] = v
	}
	return v
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
			return nil, fmt.Errorf("%q are no numbers of ranks such as 1..17,32", text)
		}
		last, err := strconv.Atoi(high)
		if err != nil || first < 1 || last < first || last > 1024 {
			return nil, fmt.Errorf("%q are no numbers of ranks such as 1..17,32", text)
		}
		for n := first; n <= last; n++ {
			counts = append(counts, n)
		}
	}
	return counts, nil
}
