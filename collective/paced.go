package collective

import (
	"slices"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// What plan.Paced is taken for. Its gain is in what links queue, which costs do not
// tell, so this rule stands beside the choice by cost.
const (
	pacedBelow = 400e6     // bytes a second of links that it is for
	pacedHosts = 8         // and how many hosts at most: beyond that slices are tiny
	pacedRanks = 64        // and ranks
	pacedLeast = 256 << 10 // bytes of a vector
	pacedName  = "paced"
)

// paces reports whether a call that leaves the algorithm to the group is paced: where
// all hosts have as many ranks. It asks only for what all ranks have alike, which
// whether a rank gives an output of its own is not.
func (g *Group) paces(c *Call) bool {
	n, rate := len(g.ranks), g.config.Links.Across.BytesPerSecond
	auto := func(name string) bool { return name == "" || name == "auto" }
	uneven := func(host []int) bool { return len(host) != len(g.hosts[0]) }
	return c.Kind == plan.AllReduce && auto(c.Algorithm) && auto(g.config.Algorithm) &&
		n <= pacedRanks && len(g.hosts) > 1 && len(g.hosts) <= pacedHosts && !slices.ContainsFunc(g.hosts, uneven) &&
		rate > 0 && rate < pacedBelow &&
		(c.Out.Len == 0 || c.Out.Len == c.In.Len) && c.InBounds == nil && c.In.Size() >= pacedLeast
}
