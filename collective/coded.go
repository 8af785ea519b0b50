package collective

import "github.com/gradfusion/gradfusion/collective/plan"

// coding is a call with a Codec being compiled. There are H sites (ranks, or
// hosts where the Codec is for the way between them), of which site s has the
// ranks sites[s], and C columns: a column is a slice of the vector and the one
// rank of each site that works on it. Slices are cut in pieces, and a piece in H
// parts, one for each site. For every piece:
//
//	gather in:   in a site, all send their piece of each column to its rank, which adds them up
//	contribute:  in a column, each rank encodes every other site's part and sends it there
//	sum:         each adds what it receives to its own part, in the order of the sites, encodes the sum and sends that to the others
//	results:     all decode it, also its maker
//	spread:      in a site, the column's rank sends the piece to all others
//
// The first and the last step are in float32, and empty where sites are single
// ranks. All ranks decode the same bytes, so they get the same bits. A column's
// rank sends and receives 2 (H-1)/(H C) of the encoded vector.
//
// The steps of several pieces overlap: sums follow contributions by some pieces, and
// results those, so that links are busy while a rank that computes as well takes its
// time. Sends and receives follow one order on all ranks: for each p gather p and send
// contributions, sum p-lag and send that, take results and spread p-2lag; all that a
// move waits for is part of earlier ones. On slow links one goroutine does all that, as
// no message waits for its receiver: for what two can do at once a link is not fast
// enough, and they would wake each other for each piece.
type coding struct {
	*assembly
	codec   Codec
	sites   [][]int
	site    int // this rank's, and its place in it
	place   int
	columns int
	pieces  int
	work    memory  // the result
	cuts    [][]int // of each column's pieces
	most    int     // bytes of the largest encoded part
}

// A piece is what is encoded at once. Encoded it fits an eager message, which
// waits for nobody: ranks that send some pieces ahead of the sums would else wait for
// each other for ever. It is not longer than what overlaps well: an eighth of
// what a rank sums, but for short ones, of which messages would be tiny.
const (
	codedLeast = 1 << 16
	codedMost  = 1 << 18
	codedTurns = 8
	// codedAhead is how many messages a rank sends ahead of the sums that they go into:
	// a link of 1 Gbit/s takes a millisecond for them. More would lie in no cache.
	codedAhead = 2
)

// codedGrain is what lengths are a multiple of, where they are long enough.
const codedGrain = 256

func (g *Group) compileCoded(c *Call) (*program, error) {
	f := coding{assembly: g.assemble(c), codec: c.Codec, work: outMemory, sites: g.hosts}
	f.header.algorithm = c.Codec.Name()
	if c.AcrossHosts {
		f.header.algorithm += "/hosts"
	} else {
		f.sites = make([][]int, len(g.ranks))
		for r := range f.sites {
			f.sites[r] = []int{r}
		}
	}
	if c.Out.Len == 0 {
		f.work = inMemory
	}
	f.columns = len(f.sites[0])
	for s, ranks := range f.sites {
		f.columns = min(f.columns, len(ranks))
		for place, r := range ranks {
			if r == g.rank {
				f.site, f.place = s, place
			}
		}
	}
	f.cut(c.In.Len)
	if c.Op == Mean {
		f.divide = region{f.work, 0, c.In.Len}
	}
	lag := max(codedAhead/max(len(f.sites)-1, 1), 1)
	for p := range f.pieces + 2*lag {
		f.prepare(p)
		f.contribute(p)
		f.sum(p - lag)
		f.results(p - 2*lag)
		f.spread(p - 2*lag)
	}
	slow := g.config.Links.Across.BytesPerSecond
	f.inline = f.inline && (f.sent <= 4*smallLimit || slow > 0 && slow < pacedBelow)
	return f.program, nil
}

// cut cuts the vector in columns and those in pieces.
func (f *coding) cut(length int) {
	columns := cutEvenly(0, length, f.columns)
	longest := 0
	for j := range f.columns {
		longest = max(longest, (columns[j+1]-columns[j]+len(f.sites)-1)/len(f.sites))
	}
	piece := min(max(codedLeast, longest/codedTurns/codedGrain*codedGrain), codedMost) // as cuts are: no part is longer
	for f.codec.EncodedLen(piece) > smallLimit && piece > codedGrain {
		piece -= codedGrain
	}
	f.pieces = max(1, (longest+piece-1)/piece)
	for j := range f.columns {
		f.cuts = append(f.cuts, cutEvenly(columns[j], columns[j+1], f.pieces))
	}
	for j := range f.columns {
		for p := range f.pieces {
			for s := range f.sites {
				f.most = max(f.most, f.codec.EncodedLen(f.part(j, p, s).size()))
			}
		}
	}
}

// cutEvenly returns n+1 bounds from lo to hi, multiples of the grain apart where
// there is enough.
func cutEvenly(lo, hi, n int) []int {
	grain := 1
	if hi-lo >= n*codedGrain {
		grain = codedGrain
	}
	bounds := plan.Cut((hi-lo)/grain, n)
	for i := range bounds {
		bounds[i] = lo + bounds[i]*grain
	}
	bounds[n] = hi
	return bounds
}

// piece is piece p of a column; in mem.
func (f *coding) piece(mem memory, column, p int) region {
	return region{mem, f.cuts[column][p], f.cuts[column][p+1]}
}

// part is the part of a piece that a site sums.
func (f *coding) part(column, p, site int) region {
	lo, hi := f.cuts[column][p], f.cuts[column][p+1]
	bounds := cutEvenly(lo, hi, len(f.sites))
	return region{f.work, bounds[site], bounds[site+1]}
}

// Slots of encoded parts: two pieces' contributions that are sent, in turns, one
// piece's that are received, two own sums, in turns, and received ones.
func (f *coding) slot(at, column, p, site int) region {
	return region{wireMemory, at * f.most, at*f.most + f.codec.EncodedLen(f.part(column, p, site).size())}
}

func (f *coding) sending(p, site int) region {
	return f.slot(p%2*len(f.sites)+site, f.place, p, site)
}

func (f *coding) received(p, from int) region {
	return f.slot(2*len(f.sites)+from, f.place, p, f.site)
}

func (f *coding) summed(p int) region {
	return f.slot(3*len(f.sites)+p%2, f.place, p, f.site)
}

func (f *coding) result(p, from int) region {
	return f.slot(3*len(f.sites)+2, f.place, p, from)
}

// others calls visit for the other sites, nearest first: the site to send to and
// the one to receive from at the same time.
func (f *coding) others(visit func(to, from int)) {
	n := len(f.sites)
	for step := 1; step < n; step++ {
		visit((f.site+step)%n, (f.site-step+n)%n)
	}
}

func (f *coding) code(kind actionKind, at, from region) {
	f.act(action{span: span{at: at}, kind: kind, from: from})
}

// prepare gathers a piece in the site and encodes its parts.
func (f *coding) prepare(p int) {
	if p >= f.pieces {
		return
	}
	local := f.sites[f.site]
	for j := range f.columns {
		if j != f.place {
			f.send(local[j], f.piece(inMemory, j, p), true)
		}
	}
	if f.place >= f.columns {
		return
	}
	mine := f.piece(f.work, f.place, p)
	if f.work != inMemory {
		f.copy(mine, f.piece(inMemory, f.place, p))
	}
	for place, r := range local {
		if place != f.place {
			f.act(action{span: span{at: mine}, kind: receiveAction, peer: r, reduce: true})
		}
	}
	f.others(func(to, _ int) { f.code(encodeAction, f.sending(p, to), f.part(f.place, p, to)) })
}

// contribute sends a piece's encoded parts to their owners.
func (f *coding) contribute(p int) {
	if p >= f.pieces || f.place >= f.columns {
		return
	}
	f.others(func(to, _ int) { f.send(f.sites[to][f.place], f.sending(p, to), false) })
}

// sum adds up the own part, and encodes it and hands it out.
func (f *coding) sum(p int) {
	if p < 0 || p >= f.pieces || f.place >= f.columns {
		return
	}
	f.others(func(_, from int) {
		f.act(action{span: span{at: f.received(p, from)}, kind: receiveAction, peer: f.sites[from][f.place]})
	})
	own := f.part(f.place, p, f.site)
	f.code(beginAction, own, own)
	for from := range f.sites {
		if from != f.site {
			f.code(decodeAddAction, own, f.received(p, from))
		}
	}
	f.code(encodeSumAction, f.summed(p), own)
	f.others(func(to, _ int) { f.send(f.sites[to][f.place], f.summed(p), false) })
	f.code(decodeAction, own, f.summed(p))
}

// results takes the others' sums.
func (f *coding) results(p int) {
	if p < 0 || p >= f.pieces || f.place >= f.columns {
		return
	}
	f.others(func(_, from int) {
		at := f.result(p, from)
		f.act(action{span: span{at: at}, kind: receiveAction, peer: f.sites[from][f.place]})
		f.code(decodeAction, f.part(f.place, p, from), at)
	})
}

// spread hands a piece's result out in the site.
func (f *coding) spread(p int) {
	if p < 0 || p >= f.pieces {
		return
	}
	local := f.sites[f.site]
	if f.place < f.columns {
		for place, r := range local {
			if place != f.place {
				f.send(r, f.piece(f.work, f.place, p), false)
			}
		}
	}
	for j := range f.columns {
		if j != f.place {
			f.act(action{span: span{at: f.piece(f.work, j, p)}, kind: receiveAction, peer: local[j]})
		}
	}
}
