package plan

import (
	"fmt"
	"slices"
)

// Hierarchical works inside hosts, across them, and inside again, so that a
// host's ranks share what crosses its network interface.
//
//	host A: 0 1   host B: 2 3     inside   0↔1      2↔3      halves of the sum
//	                              across   0↔2      1↔3      each on its half
//	                              inside   0↔1      2↔3      back together
//
// AllReduce is a ReduceScatter inside every host (direct), an AllReduce of every
// slice across hosts (halving-doubling for a power of two of hosts, else ring),
// and an AllGather inside: a 4 x 4 job sends 4 aggregated gradients across and
// not 16. Each host sends 2 (h-1)/h S bytes across for h hosts, whatever its
// number of ranks. Hosts may be unequal: the vector is cut in slices (their least
// common multiple, where that is small), of which each rank of a host takes its
// share, and a slice goes across between those who own it.
//
// Reduce and Broadcast are a tree inside every host, to or from one leader, and a
// tree across the leaders: S bytes cross per host. Barrier is naive inside and
// Bruck's across. AllGather and ReduceScatter: see hierarchical_parts.go. Gather,
// Scatter and AllToAll must send as many bytes across as flat ones and are left
// to these. On one host it is direct or a tree. (HiCCL, NCCL's and HCCL's
// three-phase all-reduce; Jia and others, Highly scalable deep learning training
// system with mixed-precision, 2018.)
func Hierarchical(k Kind, w World, root int) Plan {
	hosts := w.hosts()
	switch k {
	case AllReduce:
		return hierarchicalAllReduce(w.Ranks, hosts)
	case Reduce:
		up := func(n, root int) Plan { return Tree(Reduce, n, root) }
		return Then(insideHosts(w.Ranks, hosts, root, up), acrossLeaders(w.Ranks, hosts, root, up))
	case Broadcast:
		down := func(n, root int) Plan { return Tree(Broadcast, n, root) }
		return Then(acrossLeaders(w.Ranks, hosts, root, down), insideHosts(w.Ranks, hosts, root, down))
	case Barrier:
		up := func(n, root int) Plan { return toRoot(n, 1, root, false) }
		across := func(n, _ int) Plan { return Bruck(Barrier, n, 0) }
		down := func(n, root int) Plan { return fromRoot(n, 1, root, false) }
		return Then(insideHosts(w.Ranks, hosts, 0, up), acrossLeaders(w.Ranks, hosts, 0, across), insideHosts(w.Ranks, hosts, 0, down))
	case ReduceScatter:
		return hierarchicalReduceScatter(w.Ranks, hosts)
	case AllGather:
		return hierarchicalAllGather(w.Ranks, hosts)
	}
	panic(fmt.Sprintf("plan: hierarchical does not do %v", k))
}

// leader is the position of a host's leader: the root, or else the first.
func leader(host []int, root int) int { return max(0, slices.Index(host, root)) }

// insideHosts runs a plan of one chunk on every host at once, with its leader as
// root.
func insideHosts(n int, hosts [][]int, root int, plan func(n, root int) Plan) Plan {
	plans := make([]Plan, len(hosts))
	for h, host := range hosts {
		plans[h] = OnRanks(plan(len(host), leader(host, root)), host, n)
	}
	return Zip(plans...)
}

// acrossLeaders runs a plan on the hosts' leaders.
func acrossLeaders(n int, hosts [][]int, root int, plan func(n, root int) Plan) Plan {
	leaders := make([]int, len(hosts))
	at := 0
	for h, host := range hosts {
		leaders[h] = host[leader(host, root)]
		if leaders[h] == root {
			at = h
		}
	}
	return OnRanks(plan(len(hosts), at), leaders, n)
}

func hierarchicalAllReduce(n int, hosts [][]int) Plan {
	across := allReduceAcross(len(hosts))
	cuts := sliceCount(hosts)
	total := cuts * across.Chunks
	var scatter, exchange, gather []Plan
	for _, host := range hosts {
		bounds := Cut(cuts, len(host))
		for i := range bounds {
			bounds[i] *= across.Chunks
		}
		inside := func(k Kind) Plan { return OnRanks(Direct(k, len(host), 0).OnRuns(bounds, total), host, n) }
		scatter, gather = append(scatter, inside(ReduceScatter)), append(gather, inside(AllGather))
	}
	for first := 0; first < cuts; {
		owners, next := sliceOwners(hosts, cuts, first)
		run := next - first // of slices that the same ranks own
		bounds := make([]int, across.Chunks+1)
		for i := range bounds {
			bounds[i] = first*across.Chunks + i*run
		}
		exchange = append(exchange, OnRanks(across.OnRuns(bounds, total), owners, n))
		first = next
	}
	return Then(Zip(scatter...), Zip(exchange...), Zip(gather...))
}

// allReduceAcross is the all-reduce of h ranks on h hosts: fewest rounds where that
// costs no bytes, else fewest bytes.
func allReduceAcross(h int) Plan {
	if h&(h-1) == 0 {
		return HalvingDoubling(AllReduce, h, 0)
	}
	return Ring(AllReduce, h, 0)
}

// sliceCount is the least common multiple of the hosts' sizes where that is at
// most four per rank of the largest host; else four, which leaves shares of a
// host that differ by a slice.
func sliceCount(hosts [][]int) int {
	most, multiple := 0, 1
	for _, host := range hosts {
		most = max(most, len(host))
	}
	for _, host := range hosts {
		if multiple = multiple / divisor(multiple, len(host)) * len(host); multiple > 4*most {
			return 4 * most
		}
	}
	return multiple
}

// divisor is the greatest common one.
func divisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// sliceOwners returns the rank of each host that owns a slice, and the first
// later slice that others own.
func sliceOwners(hosts [][]int, cuts, slice int) (owners []int, next int) {
	next = cuts
	for _, host := range hosts {
		bounds := Cut(cuts, len(host))
		for i, r := range host {
			if slice < bounds[i+1] {
				owners = append(owners, r)
				next = min(next, bounds[i+1])
				break
			}
		}
	}
	return owners, next
}
