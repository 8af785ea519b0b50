package commtest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// rehosted is a transport that places its ranks on other hosts.
type rehosted struct {
	collective.Transport
	hosts [][]int
}

func (r rehosted) Hosts() [][]int { return r.hosts }

// testSeveralHosts runs the algorithms that care about hosts on equal and
// unequal ones, and a selection that names them.
func testSeveralHosts(t *testing.T, connect Connect) {
	layouts := [][][]int{
		{{0, 2}, {1, 3}},
		{{0, 1, 2}, {3, 4}},
		{{0, 3}, {1}, {2, 4, 5, 6}},
		{{0, 1, 2, 3}, {4, 5, 6, 7}},
	}
	if testing.Short() {
		layouts = layouts[:2]
	}
	for _, hosts := range layouts {
		n := 0
		for _, host := range hosts {
			n += len(host)
		}
		with(t, connect, n, func(w *world) {
			w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
				g := collective.NewGroup(rehosted{tr, hosts}, collective.GroupConfig{Algorithm: "all-reduce=hierarchical:64KiB,hierarchical/3"})
				defer g.Close()
				for _, a := range plan.Algorithms() {
					if !a.ByHost {
						continue
					}
					if err := everyLength(ctx, g, a.Name, a.Kinds); err != nil {
						return fmt.Errorf("hosts %v: %w", hosts, err)
					}
				}
				if err := everyLength(ctx, g, "", plan.Kinds()); err != nil {
					return fmt.Errorf("hosts %v: %w", hosts, err)
				}
				return collective.Barrier(ctx, g)
			})
		})
	}
}

// testSegments runs the segmented forms.
func testSegments(t *testing.T, connect Connect) {
	counts := []int{2, 3, 5}
	if testing.Short() {
		counts = counts[1:2]
	}
	for _, n := range counts {
		groups(t, connect, n, collective.GroupConfig{}, func(ctx context.Context, g *collective.Group) error {
			for _, a := range plan.Algorithms() {
				a = a.Segmented(3)
				if err := everyLength(ctx, g, a.Name, a.Kinds); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// everyLength runs small and large trials of some kinds by one algorithm.
func everyLength(ctx context.Context, g *collective.Group, algorithm string, kinds []plan.Kind) error {
	n := g.Size()
	for _, k := range kinds {
		for _, length := range []int{0, 1, n + 1, 1009, 50_021} {
			tr := trial{kind: k, typ: device.F32, length: length, root: length % n, algorithm: algorithm}
			if err := tr.run(ctx, g); err != nil {
				return err
			}
			tr.typ = device.I32
			if !slices.Contains([]plan.Kind{plan.Barrier, plan.AllToAll}, k) {
				tr.bounds = append(plan.Cut(length/2, n-1), length)
			}
			if err := tr.run(ctx, g); err != nil {
				return err
			}
		}
	}
	return nil
}
