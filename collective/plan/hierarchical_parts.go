package plan

// The hierarchical operations whose parts belong to ranks. Rank i of a host
// stands in for the i-th ranks of all other hosts there (or the i modulo its size,
// on hosts of unequal size): it holds their parts in an AllGather, and their sums
// in a ReduceScatter.
//
//	host A: 0 1   host B: 2 3      AllGather: across 0↔2 1↔3, one part each,
//	                               inside 0↔1 2↔3, both parts that each holds
//
// So each part crosses once to each other host, (h-1) S bytes in all instead of
// up to (n-1) S; 2 rounds.

// standIns returns, for each rank, its stand-ins: one rank of each host, itself on
// its own.
func standIns(n int, hosts [][]int) [][]int {
	all := make([][]int, n)
	for _, own := range hosts {
		for i, r := range own {
			for _, host := range hosts {
				all[r] = append(all[r], host[i%len(host)])
			}
		}
	}
	return all
}

// acrossParts has one round: move makes the move of rank r's part between r and
// its stand-in on each other host.
func acrossParts(n int, hosts [][]int, move func(r, standIn int) Move) Plan {
	return Plan{Ranks: n, Chunks: n, Rounds: func(yield func(Round) bool) {
		var round Round
		for r, all := range standIns(n, hosts) {
			for _, s := range all {
				if s != r {
					round = append(round, move(r, s))
				}
			}
		}
		if len(round) > 0 {
			yield(round)
		}
	}}
}

// insideParts has one round: move makes the move of a run of parts between the
// rank that holds them and each other rank of its host.
func insideParts(n int, hosts [][]int, move func(holder, other int) Move) Plan {
	return Plan{Ranks: n, Chunks: n, Rounds: func(yield func(Round) bool) {
		var round Round
		all := standIns(n, hosts)
		for h, host := range hosts {
			for _, holder := range host {
				held := heldRuns(all, h, holder)
				for _, other := range host {
					if other == holder {
						continue
					}
					m := move(holder, other)
					for _, run := range held {
						m.Src, m.Dst, m.N = run[0], run[0], run[1]-run[0]
						round = append(round, m)
					}
				}
			}
		}
		if len(round) > 0 {
			yield(round)
		}
	}}
}

// heldRuns lists the parts that holder has on host h, as runs.
func heldRuns(standIns [][]int, h, holder int) [][2]int {
	var runs [][2]int
	for part := range standIns {
		switch last := len(runs) - 1; {
		case standIns[part][h] != holder:
		case last >= 0 && runs[last][1] == part:
			runs[last][1]++
		default:
			runs = append(runs, [2]int{part, part + 1})
		}
	}
	return runs
}

func hierarchicalAllGather(n int, hosts [][]int) Plan {
	return Then(
		acrossParts(n, hosts, func(r, s int) Move { return Move{From: r, To: s, Src: r, Dst: r, N: 1} }),
		insideParts(n, hosts, func(holder, other int) Move { return Move{From: holder, To: other} }),
	)
}

func hierarchicalReduceScatter(n int, hosts [][]int) Plan {
	return Then(
		insideParts(n, hosts, func(holder, other int) Move { return Move{From: other, To: holder, Reduce: true} }),
		acrossParts(n, hosts, func(r, s int) Move { return Move{From: s, To: r, Src: r, Dst: r, N: 1, Reduce: true} }),
	)
}
