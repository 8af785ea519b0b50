package parallel

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/optim"
)

// globalNorm is the norm of all gradients of the model: the squares of a
// parameter are summed where it is, in the canonical tree, and the parameters in
// the order of their names, so that it is equal to the bit however the model is
// cut. Of a tied parameter the first stage's copy counts.
type globalNorm struct {
	norm *optim.Norm
	sum  optim.CanonicalSum

	// Of a model that is cut over ranks.
	world    collective.Comm // nil for one that is not
	counted  []int           // the segments that this rank answers for
	bounds   []int           // of the ranks in all
	order    []int           // in all, by name
	own, all []float64
	nodes    []optim.Node
}

// newGlobalNorm is collective over the world if the model is cut. stages has the
// stage of each segment.
func newGlobalNorm(ctx context.Context, dev device.Device, l layout, segments []optim.Segment, stages []int) (*globalNorm, error) {
	norm, err := optim.NewNorm(dev, segments)
	if err != nil {
		return nil, err
	}
	n := &globalNorm{norm: norm}
	if !l.cut() {
		return n, nil
	}
	n.world = l.world
	var list strings.Builder
	for i, s := range segments {
		fmt.Fprintf(&list, "%d %s\n", stages[i], s.Param.Name)
	}
	lists, err := gatherBytes(ctx, l.world, []byte(list.String()), "names of parameters")
	if err != nil {
		return nil, err
	}
	return n, n.divide(lists)
}

// claim is a parameter that a rank holds.
type claim struct{ rank, stage, index int }

// divide decides which rank answers for which parameter: the lowest stage's
// lowest rank.
func (n *globalNorm) divide(lists [][]byte) error {
	claims := map[string]claim{}
	for rank, list := range lists {
		for i, line := range strings.Split(strings.TrimSuffix(string(list), "\n"), "\n") {
			if line == "" {
				continue // a rank without parameters
			}
			number, name, _ := strings.Cut(line, " ")
			stage, err := strconv.Atoi(number)
			if err != nil {
				return fmt.Errorf("rank %d lists the parameter %q: %w", rank, line, err)
			}
			if c, ok := claims[name]; !ok || stage < c.stage {
				claims[name] = claim{rank, stage, i}
			}
		}
	}
	byRank := make([][]string, len(lists))
	for name, c := range claims {
		byRank[c.rank] = append(byRank[c.rank], name)
	}
	n.bounds = []int{0}
	var names []string
	for rank, own := range byRank {
		slices.Sort(own)
		names = append(names, own...)
		n.bounds = append(n.bounds, len(names))
		for _, name := range own {
			if rank == n.world.Rank() {
				n.counted = append(n.counted, claims[name].index)
			}
		}
	}
	for i := range names {
		n.order = append(n.order, i)
	}
	slices.SortFunc(n.order, func(a, b int) int { return strings.Compare(names[a], names[b]) })
	n.own, n.all = make([]float64, len(n.counted)), make([]float64, len(names))
	return nil
}

// compute returns the norm, on every rank; it is collective over the world if
// the model is cut.
func (n *globalNorm) compute(ctx context.Context, segments []optim.Segment) (float64, error) {
	if n.world == nil {
		return n.norm.Global(segments)
	}
	if err := n.norm.Blocks(segments); err != nil {
		return 0, err
	}
	for k, i := range n.counted {
		n.nodes = n.norm.Nodes(segments, i, n.nodes[:0])
		n.sum.Start(0)
		for _, node := range n.nodes {
			n.sum.Push(node)
		}
		n.own[k] = n.sum.Total()
	}
	call := collective.Call{Kind: plan.AllGather, In: device.FromF64(n.own), Out: device.FromF64(n.all), InBounds: n.bounds, Label: "norms of gradients"}
	if err := n.world.Start(ctx, call).Wait(ctx); err != nil {
		return 0, err
	}
	total := 0.0
	for _, i := range n.order {
		total += n.all[i]
	}
	return math.Sqrt(total), nil
}
