package commtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// Open returns the Comms of a fresh world of n ranks, rank r at index r; the
// suite closes them. It fails tb when it cannot.
type Open func(tb testing.TB, n int) []collective.Comm

// Comms tests Comms that are no Groups over a transport: worked values, all
// operations, types and reductions over awkward lengths in and out of place, parts
// of any size, encoded values, queues, sub-communicators and messages, with that
// many ranks.
func Comms(t *testing.T, open Open, ranks ...int) {
	for _, n := range ranks {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			comms := open(t, n)
			for _, test := range []struct {
				name string
				only int // ranks; 0: any number
				run  func(context.Context, collective.Comm) error
			}{
				{"worked values", 4, workedValues},
				{"every operation", 0, everyOperation},
				{"parts of any size", 0, partsOfAnySize},
				{"encoded values", 0, func(ctx context.Context, c collective.Comm) error { return Encoded(ctx, c, false) }},
				{"queue", 3, queueOfThree},
				{"sub-groups", 4, subGroupsOfFour},
				{"circle", 0, aroundACircle},
				{"message", 2, oneMessage},
			} {
				if test.only == 0 || test.only == n {
					t.Run(test.name, func(t *testing.T) { onAll(t, comms, test.run) })
				}
			}
			onAll(t, comms, func(_ context.Context, c collective.Comm) error { return c.Close() })
		})
	}
}

// onAll runs f on all ranks at once.
func onAll(t *testing.T, comms []collective.Comm, f func(context.Context, collective.Comm) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepPatience)
	defer cancel()
	var all errgroup.Group
	for r, c := range comms {
		all.Go(func() error {
			if err := f(ctx, c); err != nil {
				return fmt.Errorf("rank %d: %w", r, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

// workedValues are sums for four ranks that one can do in one's head.
func workedValues(ctx context.Context, g collective.Comm) error {
	for _, tt := range []struct {
		op   collective.Op
		want [2]float32
	}{{collective.Sum, [2]float32{10, 14}}, {collective.Mean, [2]float32{2.5, 3.5}}} {
		r := float32(g.Rank())
		got := [2]float32{r + 1, r + 2}
		if err := collective.AllReduce(ctx, g, tt.op, device.FromF32(got[:])); err != nil {
			return err
		}
		if got != tt.want {
			return fmt.Errorf("%v of [1 2] [2 3] [3 4] [4 5] is %v, not %v", tt.op, got, tt.want)
		}
	}
	return nil
}

// everyOperation is testEveryOperation for a Comm that chooses its own algorithms.
func everyOperation(ctx context.Context, g collective.Comm) error {
	n := g.Size()
	for _, k := range plan.Kinds() {
		for _, typ := range types() {
			for _, op := range ops(k) {
				for _, length := range opLengths(n, k, typ, op) {
					tr := trial{kind: k, op: op, typ: typ, length: length, root: length % n}
					if err := inAndOutOfPlace(ctx, g, tr); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func inAndOutOfPlace(ctx context.Context, g collective.Comm, tr trial) error {
	for _, tr.inPlace = range []bool{false, true} {
		if err := tr.run(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// partsOfAnySize is testBounds for such a Comm.
func partsOfAnySize(ctx context.Context, g collective.Comm) error {
	n := g.Size()
	rng := rand.New(rand.NewPCG(uint64(n), 7)) // the same on all ranks
	for range 6 {
		bounds, sizes := randomParts(rng, n)
		for _, k := range plan.Kinds() {
			tr := trial{kind: k, typ: device.I32, length: bounds[n], bounds: bounds, root: n / 2}
			switch k {
			case plan.Barrier:
				continue
			case plan.AllToAll:
				tr.sizes = sizes
			}
			if err := inAndOutOfPlace(ctx, g, tr); err != nil {
				return fmt.Errorf("bounds %v: %w", bounds, err)
			}
		}
	}
	return nil
}

// randomParts are bounds, and sizes of an all-to-all by sender and receiver, some
// of them 0.
func randomParts(rng *rand.Rand, n int) (bounds []int, sizes [][]int) {
	bounds, sizes = make([]int, n+1), make([][]int, n)
	for i := range n {
		bounds[i+1] = bounds[i] + max(0, rng.IntN(40)-10)
	}
	for i := range sizes {
		sizes[i] = make([]int, n)
		for j := range sizes[i] {
			sizes[i][j] = max(0, rng.IntN(20)-5)
		}
	}
	return bounds, sizes
}
