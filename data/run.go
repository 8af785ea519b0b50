package data

import "iter"

// Micros returns the micro-batches that n samples make: ceil(n / micro).
func Micros(n, micro int) int { return (n + micro - 1) / micro }

// MicroBounds returns the samples [lo, hi) of n that micro-batch m holds. Only
// the last one can be smaller than micro.
func MicroBounds(n, micro, m int) (lo, hi int) {
	return min(m*micro, n), min((m+1)*micro, n)
}

// Run deals micro-batches 0 to micros-1 to ranks in contiguous runs and
// returns the run [lo, hi) of one rank; the first micros mod ranks ranks get
// one more than the others (4 over 3 ranks is 2, 1, 1). With fewer
// micro-batches than ranks the last runs are empty. Ranks here are the
// data-parallel columns of a layout.
func Run(micros, ranks, rank int) (lo, hi int) {
	each, more := micros/ranks, micros%ranks
	lo = rank*each + min(rank, more)
	hi = lo + each
	if rank < more {
		hi++
	}
	return lo, hi
}

// Part says which samples one micro-batch holds and where it stands.
type Part struct {
	Step    int  // global step, counted from 0 over the whole run
	Epoch   int  // the augmentation of a sample depends on it
	Micro   int  // index within the step, over all ranks
	Micros  int  // micro-batches of the step, over all ranks
	Total   int  // samples of the step, over all ranks
	Last    bool // the last one of this rank in the step
	Indices []int
}

// Parts yields the micro-batches of one rank for the steps [start, end), in
// order. A step in which the rank has none yields nothing. Indices is valid
// until the iteration goes on. The iteration has its own state, so s may be
// used at the same time.
func (s *Sampler) Parts(start, end, micro, ranks, rank int) iter.Seq[Part] {
	return func(yield func(Part) bool) {
		own := Sampler{samples: s.samples, batch: s.batch, seed: s.seed, epoch: -1}
		indices := make([]int, 0, s.batch)
		for step := start; step < end; step++ {
			p := Part{Step: step, Epoch: own.Epoch(step), Total: own.Size(step)}
			p.Micros = Micros(p.Total, micro)
			lo, hi := Run(p.Micros, ranks, rank)
			if lo == hi {
				continue
			}
			indices = own.Batch(indices[:0], step)
			for p.Micro = lo; p.Micro < hi; p.Micro++ {
				from, to := MicroBounds(p.Total, micro, p.Micro)
				p.Indices, p.Last = indices[from:to], p.Micro == hi-1
				if !yield(p) {
					return
				}
			}
		}
	}
}

// EvalParts yields the micro-batches of n samples that one rank evaluates, in
// the set's own order, as parts of step 0. Over all ranks each sample is there
// exactly once, and the micro-batches are the same for any number of ranks.
func EvalParts(n, micro, ranks, rank int) iter.Seq[Part] {
	return func(yield func(Part) bool) {
		p := Part{Micros: Micros(n, micro), Total: n}
		indices := make([]int, 0, micro)
		lo, hi := Run(p.Micros, ranks, rank)
		for p.Micro = lo; p.Micro < hi; p.Micro++ {
			from, to := MicroBounds(n, micro, p.Micro)
			indices = indices[:0]
			for i := from; i < to; i++ {
				indices = append(indices, i)
			}
			p.Indices, p.Last = indices, p.Micro == hi-1
			if !yield(p) {
				return
			}
		}
	}
}
