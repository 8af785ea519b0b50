package plan

import "fmt"

// Paced is for hosts that slow links join. It is hierarchical: a sum of slices
// inside each host, across hosts the direct all-reduce of each slice, all-to-all of
// its parts, sum by the owner and all-gather, and inside again.
//
//	host A: 0 1   host B: 2 3     inside   0↔1   2↔3    halves of the sum
//	                              across   0↔2   1↔3    a quarter of it
//	                              across   0↔2   1↔3    halves again
//	                              inside   0↔1   2↔3    back together
//
// A vector goes in pieces whose parts are short messages (Sized), so that none has to
// be asked for, and acknowledgements and small messages never lie behind more than
// about a megabyte. Large messages fill whatever the path queues: at 1 Gbit/s tens of
// milliseconds, which a call in the other direction, or the next one's first message,
// then lose on the way. The price are many messages, and copies, which a slow link
// hides. It hides what goes on inside hosts as well, as each piece's steps follow each
// other at a distance, in which ranks send what others need of other pieces:
//
//	piece      0 1 2 3 4 5 ...        with a lead of 2 and a lag of 3
//	inside     0 1 2 3 4 5 6 7 8 9    contributions to the slice
//	across         0 1 2 3 4 5 6 7    contributions to the part
//	across               0 1 2 3 4    sums of the part
//	inside                   0 1 2    sums of the slice
//
// One piece takes 4 rounds, p pieces p + 2 lead + lag where that is more than gaps.
// Each host sends 2 (h-1)/h S bytes across for h hosts, each of its m ranks
// 2 (m-1)/m S inside. An owner adds to its own value that of the rank before it,
// of the one before that, and so on in a circle; first of its host, then of the hosts.
// Hosts may be unequal: see Hierarchical. It does AllReduce.
func Paced(k Kind, w World, root int) Plan { return pacedPieces(k, w, 1) }

const (
	pacedLag     = 16       // ranks times pieces by which a host's results follow its contributions
	pacedLead    = 2        // pieces by which what crosses follows what is summed inside
	pacedMessage = 60 << 10 // bytes of a move, at most: it has to fit what is sent unasked
)

// pacedSized is Paced in as many pieces as a vector of that many bytes takes.
func pacedSized(k Kind, w World, _, bytes int) Plan {
	most := sliceCount(w.hosts()) * len(w.hosts()) * pacedMessage
	return pacedPieces(k, w, max(1, (bytes+most-1)/most))
}

func pacedPieces(k Kind, w World, pieces int) Plan {
	if k != AllReduce {
		panic(fmt.Sprintf("plan: paced does not do %v", k))
	}
	p := pacing{hosts: w.hosts()}
	p.slices = sliceCount(p.hosts)
	most := 0
	for _, host := range p.hosts {
		most = max(most, len(host))
	}
	lead, lag := 0, 0
	if most > 1 {
		lead = pacedLead
	}
	if len(p.hosts) > 1 {
		lag = max(pacedLag/most, 4)
	}
	for slice := 0; slice < p.slices; slice++ {
		owners, _ := sliceOwners(p.hosts, p.slices, slice)
		p.owners = append(p.owners, owners)
	}
	chunks := p.slices * len(p.hosts) // of a piece
	steps := []func(Round, int) Round{p.sumInside, p.sumAcross, p.spreadAcross, p.spreadInside}
	delays := []int{0, lead, lead + lag, lead + lag + lead}
	return Plan{Ranks: w.Ranks, Chunks: pieces * chunks, Rounds: func(yield func(Round) bool) {
		var round Round
		for turn := range pieces + delays[3] {
			round = round[:0]
			for i, step := range steps {
				if piece := turn - delays[i]; piece >= 0 && piece < pieces {
					round = step(round, piece*chunks)
				}
			}
			if len(round) > 0 && !yield(round) {
				return
			}
		}
	}}
}

// pacing appends the moves of a piece's steps; its chunks begin at first. Part h of
// slice s, which the slice's owner on host h sums, is chunk s*hosts + h.
type pacing struct {
	hosts  [][]int
	slices int
	owners [][]int // of each slice, by host
}

// inside visits the chunks of the slices that a rank of a host owns.
func (p *pacing) inside(host, at int, visit func(chunk int)) {
	bounds := Cut(p.slices, len(p.hosts[host]))
	for chunk := bounds[at] * len(p.hosts); chunk < bounds[at+1]*len(p.hosts); chunk++ {
		visit(chunk)
	}
}

// pairs visits all pairs of n, each as sender and receiver: nobody waits for two at once.
func pairs(n int, visit func(from, to int)) {
	for step := 1; step < n; step++ {
		for from := range n {
			visit(from, (from+step)%n)
		}
	}
}

func (p *pacing) sumInside(round Round, first int) Round {
	for h, host := range p.hosts {
		pairs(len(host), func(from, to int) {
			p.inside(h, to, func(chunk int) {
				round = append(round, Move{From: host[from], To: host[to], Src: first + chunk, Dst: first + chunk, N: 1, Reduce: true})
			})
		})
	}
	return round
}

func (p *pacing) sumAcross(round Round, first int) Round {
	return p.across(round, first, true, func(_, to int) int { return to })
}

func (p *pacing) spreadAcross(round Round, first int) Round {
	return p.across(round, first, false, func(from, _ int) int { return from })
}

// across moves parts, which of them its caller says, between the owners of each slice.
func (p *pacing) across(round Round, first int, reduce bool, part func(from, to int) int) Round {
	pairs(len(p.hosts), func(from, to int) {
		for slice, owners := range p.owners {
			at := first + slice*len(p.hosts) + part(from, to)
			round = append(round, Move{From: owners[from], To: owners[to], Src: at, Dst: at, N: 1, Reduce: reduce})
		}
	})
	return round
}

func (p *pacing) spreadInside(round Round, first int) Round {
	for h, host := range p.hosts {
		pairs(len(host), func(from, to int) {
			p.inside(h, from, func(chunk int) {
				round = append(round, Move{From: host[from], To: host[to], Src: first + chunk, Dst: first + chunk, N: 1})
			})
		})
	}
	return round
}
