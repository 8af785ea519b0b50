package parallel

import (
	"fmt"
	"slices"
	"strings"
)

// placesOn gives every rank of the world its place. hosts lists the ranks of each
// host.
func placesOn(hosts [][]int, world, pipeline, data, tensor int, placement string) ([]Place, error) {
	sizes := [3]int{tensor, data, pipeline} // innermost first
	if placement == "pipeline-inside" {
		sizes = [3]int{tensor, pipeline, data}
	} else if placement != "" && !slices.Contains(Placements(), placement) {
		return nil, fmt.Errorf("parallel: placement %q is none of %s", placement, strings.Join(Placements(), ", "))
	}
	units := make([]unit, world)
	for rank := range units {
		units[rank] = unit{ranks: []int{rank}}
	}
	if placement != "rank-order" {
		for host, ranks := range hosts {
			for _, rank := range ranks {
				units[rank].host = host
			}
		}
	}
	for _, size := range sizes {
		units = join(units, size)
	}
	out := make([]Place, world)
	for i, rank := range units[0].ranks {
		inner, middle, outer := i%sizes[0], i/sizes[0]%sizes[1], i/(sizes[0]*sizes[1])
		out[rank] = Place{Tensor: inner, Data: middle, Pipeline: outer}
		if placement == "pipeline-inside" {
			out[rank] = Place{Tensor: inner, Pipeline: middle, Data: outer}
		}
	}
	return out, nil
}

// unit is ranks that stand side by side on a line of the grid.
type unit struct {
	ranks []int
	host  int // severalHosts if they are on more than one
}

const severalHosts = -1

// join makes units of size units each: first of those on one host, in order, then
// of what is left over. The unit with the lowest rank comes first.
func join(units []unit, size int) []unit {
	var out, rest []unit
	for _, host := range hostsOf(units) {
		var here []unit
		for _, u := range units {
			if u.host == host {
				here = append(here, u)
			}
		}
		for host != severalHosts && len(here) >= size {
			out = append(out, merge(here[:size]))
			here = here[size:]
		}
		rest = append(rest, here...)
	}
	slices.SortStableFunc(rest, byLowest)
	for ; len(rest) > 0; rest = rest[size:] {
		out = append(out, merge(rest[:size]))
	}
	slices.SortStableFunc(out, byLowest)
	return out
}

// hostsOf lists the hosts in the order of their first unit.
func hostsOf(units []unit) (out []int) {
	for _, u := range units {
		if !slices.Contains(out, u.host) {
			out = append(out, u.host)
		}
	}
	return out
}

func merge(units []unit) unit {
	out := unit{host: units[0].host}
	for _, u := range units {
		out.ranks = append(out.ranks, u.ranks...)
		if u.host != out.host {
			out.host = severalHosts
		}
	}
	return out
}

func byLowest(a, b unit) int { return slices.Min(a.ranks) - slices.Min(b.ranks) }
