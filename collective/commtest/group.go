package commtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// Groups tests collective.Group over a transport.
func Groups(t *testing.T, connect Connect) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Connect)
	}{
		{"worked values", testWorkedValues},
		{"every operation", testEveryOperation},
		{"several hosts", testSeveralHosts},
		{"segments", testSegments},
		{"packed", Packed},
		{"parts of any size", testBounds},
		{"simulation", testSimulation},
		{"paced", testPaced},
		{"encoded values", testCodecs},
		{"many pieces of encoded values", testCodecsOfManyPieces},
		{"encoded values across hosts", testCodecsAcrossHosts},
		{"queue", testQueue},
		{"sub-groups", testSubGroups},
		{"exchange", testExchange},
		{"events", testEvents},
		{"different calls", testDifferentCalls},
		{"different messages", testDifferentMessages},
		{"cancelled call", testCancelledCall},
		{"time-out", testTimeout},
		{"lost peer", testLostPeer},
		{"closed peer", testClosedPeer},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, connect) })
	}
}

// testWorkedValues has the sums that one can do in one's head.
func testWorkedValues(t *testing.T, connect Connect) {
	groups(t, connect, 4, collective.GroupConfig{}, func(ctx context.Context, g *collective.Group) error {
		return workedValues(ctx, g)
	})
}

// testEveryOperation runs all kinds, reductions, types and algorithms over
// awkward lengths, with small integers whose results are exact.
func testEveryOperation(t *testing.T, connect Connect) {
	for _, n := range rankCounts(1, 2, 3, 4, 5, 7, 8) {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			groups(t, connect, n, collective.GroupConfig{}, func(ctx context.Context, g *collective.Group) error {
				for _, k := range plan.Kinds() {
					for _, typ := range types() {
						for _, op := range ops(k) {
							for _, length := range opLengths(n, k, typ, op) {
								if err := everyForm(ctx, g, trial{kind: k, op: op, typ: typ, length: length, root: length % n}); err != nil {
									return err
								}
							}
						}
					}
				}
				return nil
			})
		})
	}
}

// everyForm runs a trial by every algorithm, out of place and in place; types,
// reductions and lengths that all algorithms treat alike by two of them in turn.
func everyForm(ctx context.Context, g *collective.Group, tr trial) error {
	var able []plan.Algorithm
	for _, a := range plan.Algorithms() {
		relayed := tr.sizes != nil && slices.Contains(a.Relays, tr.kind)
		if a.Does(tr.kind) && !relayed {
			able = append(able, a)
		}
	}
	if brief := tr.typ != device.F32 && tr.bounds == nil || tr.op != collective.Sum || tr.length > 100_000; brief {
		turn := int(tr.typ) + int(tr.op) + tr.length + g.Size()
		able = []plan.Algorithm{able[turn%len(able)], able[(turn+1)%len(able)]}
	}
	for _, a := range able {
		tr.algorithm = a.Name
		for _, tr.inPlace = range []bool{false, true} {
			if err := tr.run(ctx, g); err != nil {
				return err
			}
		}
	}
	return nil
}

func types() []device.Type {
	if testing.Short() {
		return []device.Type{device.F32, device.BF16, device.I64, device.U8}
	}
	return allTypes()
}

func allTypes() []device.Type {
	return []device.Type{device.F32, device.F16, device.BF16, device.F64, device.I32, device.I64, device.I8, device.U8}
}

func ops(k plan.Kind) []collective.Op {
	if !k.Reduces() {
		return []collective.Op{collective.Sum}
	}
	return []collective.Op{collective.Sum, collective.Prod, collective.Max, collective.Min, collective.Mean}
}

// opLengths is thorough for the commonest call and brief for the others.
func opLengths(n int, k plan.Kind, typ device.Type, op collective.Op) []int {
	if op != collective.Sum {
		return []int{n + 1}
	}
	switch typ {
	case device.F32:
		lengths := []int{0, 1, n - 1, n, n + 1, 4*n + 3, 1009, 20_011}
		if n == 3 && (k == plan.AllReduce || k == plan.AllToAll) { // parts of more than one segment
			lengths = append(lengths, 900_001)
		}
		return lengths
	case device.BF16:
		return []int{0, 1, n + 1, 40_003}
	}
	return []int{0, n + 1, 1009}
}

// testBounds has parts of random sizes, some of them empty.
func testBounds(t *testing.T, connect Connect) {
	for _, n := range []int{1, 2, 3, 5} {
		groups(t, connect, n, collective.GroupConfig{}, func(ctx context.Context, g *collective.Group) error {
			rng := rand.New(rand.NewPCG(uint64(n), 7)) // the same on all ranks
			for range 12 {
				bounds, sizes := randomParts(rng, n)
				for _, k := range plan.Kinds() {
					tr := trial{kind: k, typ: device.I32, length: bounds[n], bounds: bounds, root: n / 2}
					if k == plan.Barrier {
						continue
					}
					if k == plan.AllToAll {
						tr.sizes = sizes
					}
					if err := everyForm(ctx, g, tr); err != nil {
						return fmt.Errorf("bounds %v: %w", bounds, err)
					}
				}
			}
			return nil
		})
	}
}
