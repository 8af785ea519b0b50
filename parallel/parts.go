package parallel

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// parts adds up sums of squares of parameters that lie on several ranks: cut into
// shards, dealt to stages, or parts of tensors. Each part is answered for by one
// rank, which sends the nodes of the canonical tree over the part's blocks; all
// ranks add all nodes in the same order, so the sums are equal to the bit however
// the parameters are cut into shards.
type parts struct {
	world   collective.Comm
	counted []int  // the segments that this rank answers for
	list    []part // of all ranks, by name, tensor part, and place
	params  int
	paramOf []int // by segment: its parameter, in the order of the names

	first      []int        // by rank: its first value among those of one norm; one more for the end
	bounds     [2][]int     // of the ranks in all, for one norm and for two
	own, all   []float64    // values of a rank are sorted by norm, then by part
	totals     [2][]float64 // by norm and parameter
	perSegment [2][]float64 // room for whoever wants the totals by segment
	nodes      []optim.Node
	sum        optim.CanonicalSum
}

// part is a run of blocks of a parameter, or of the part of it that a partner of
// a cut layer has.
type part struct {
	name   string
	tensor int // where the partner's part begins, 0 for whole parameters
	lo, hi int // blocks
	stage  int
	rank   int // that answers for it
	index  int // of the segment there
	param  int
	at     int // of its values among those of its rank
}

func newParts(ctx context.Context, world collective.Comm, segments []optim.Segment, stages []int) (*parts, error) {
	var text strings.Builder
	for i, s := range segments {
		fmt.Fprintf(&text, "%d %d %d %d %q\n", stages[i], tensorPart(s.Param), s.Lo/device.NormBlock, blocks(s.Hi), s.Param.Name)
	}
	lists, err := collective.GatherBytes(ctx, world, []byte(text.String()), "names of parameters")
	if err != nil {
		return nil, err
	}
	p := &parts{world: world}
	var all []part
	for rank, list := range lists {
		for i, line := range bytes.Split(bytes.TrimSuffix(list, []byte("\n")), []byte("\n")) {
			x := part{rank: rank, index: i}
			if len(line) == 0 {
				continue // a rank without parameters
			}
			if _, err := fmt.Sscanf(string(line), "%d %d %d %d %q", &x.stage, &x.tensor, &x.lo, &x.hi, &x.name); err != nil {
				return nil, fmt.Errorf("rank %d lists the parameter %q: %w", rank, line, err)
			}
			all = append(all, x)
		}
	}
	if err := p.divide(all); err != nil {
		return nil, err
	}
	p.number(len(lists), segments)
	return p, nil
}

func blocks(elements int) int { return (elements + device.NormBlock - 1) / device.NormBlock }

// tensorPart tells the parts of a tensor apart.
func tensorPart(p *nn.Param) int {
	if p.Part == nil {
		return 0
	}
	return p.Part.Runs[0].Lo
}

// divide decides which rank answers for which part: the lowest stage's lowest
// rank.
func (p *parts) divide(all []part) error {
	slices.SortFunc(all, func(a, b part) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.stage, b.stage), cmp.Compare(a.tensor, b.tensor),
			cmp.Compare(a.lo, b.lo), cmp.Compare(a.rank, b.rank))
	})
	for _, x := range all {
		n := len(p.list)
		if n == 0 || p.list[n-1].name != x.name {
			x.param = p.params
			p.params++
		} else {
			before := p.list[n-1]
			if x.stage != before.stage || x.tensor == before.tensor && x.lo == before.lo && x.hi == before.hi {
				continue // a copy
			}
			x.param = before.param
		}
		expected := 0
		if n > 0 && p.list[n-1].param == x.param && p.list[n-1].tensor == x.tensor {
			expected = p.list[n-1].hi
		}
		if x.lo != expected {
			return fmt.Errorf("%w: no rank has the elements from %d on of %s", ErrDiffer, expected*device.NormBlock, x.name)
		}
		p.list = append(p.list, x)
	}
	return nil
}

// number gives the values of all parts their places.
func (p *parts) number(ranks int, segments []optim.Segment) {
	counts := make([]int, ranks)
	names := map[string]int{}
	for i := range p.list {
		x := &p.list[i]
		names[x.name] = x.param
		x.at = counts[x.rank]
		counts[x.rank] += countNodes(x.lo, x.hi)
		if x.rank == p.world.Rank() {
			p.counted = append(p.counted, x.index)
		}
	}
	p.first = []int{0}
	for _, n := range counts {
		p.first = append(p.first, p.first[len(p.first)-1]+n)
	}
	for k := range p.bounds {
		for _, at := range p.first {
			p.bounds[k] = append(p.bounds[k], (k+1)*at)
		}
		p.totals[k] = make([]float64, p.params)
		p.perSegment[k] = make([]float64, len(segments))
	}
	for _, s := range segments {
		p.paramOf = append(p.paramOf, names[s.Param.Name])
	}
	p.all = make([]float64, len(p.bounds)*p.first[ranks])
}

// exchange sets the totals of one norm or two.
func (p *parts) exchange(ctx context.Context, segments []optim.Segment, norms ...*optim.Norm) error {
	p.own = p.own[:0]
	for _, norm := range norms {
		for _, i := range p.counted {
			p.nodes = norm.Nodes(segments, i, p.nodes[:0])
			for _, n := range p.nodes {
				p.own = append(p.own, n.Value)
			}
		}
	}
	bounds := p.bounds[len(norms)-1]
	all := p.all[:bounds[len(bounds)-1]]
	call := collective.Call{Kind: plan.AllGather, In: device.FromF64(p.own), Out: device.FromF64(all), InBounds: bounds, Label: "norms of parameters"}
	if err := p.world.Start(ctx, call).Wait(ctx); err != nil {
		return err
	}
	for k := range norms {
		p.fold(k, bounds, all)
	}
	return nil
}

// fold adds up the nodes of norm k.
func (p *parts) fold(k int, bounds []int, all []float64) {
	clear(p.totals[k])
	for i := range p.list {
		x := &p.list[i]
		if x.lo == 0 {
			p.sum.Start(0)
		}
		at := bounds[x.rank] + k*(p.first[x.rank+1]-p.first[x.rank]) + x.at
		nodesOf(x.lo, x.hi, func(lo, size int) {
			level := bits.TrailingZeros(uint(size))
			p.sum.Push(optim.Node{Level: level, Index: lo >> level, Value: all[at]})
			at++
		})
		last := i+1 == len(p.list)
		if last || p.list[i+1].param != x.param || p.list[i+1].tensor != x.tensor {
			p.totals[k][x.param] += p.sum.Total()
		}
	}
}
