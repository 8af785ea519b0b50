package optim

import "github.com/gradfusion/gradfusion/device"

// pieces iterates over what an update has to visit of a segment, as runs of
// elements counted from the segment's start.
type pieces struct {
	rows   []int32 // still to visit
	width  int
	lo, hi int // the segment, in elements of the parameter
	whole  bool
	a, b   int // the present run
}

// pieces starts an iteration. quiet says that the optimizer leaves elements as
// they are whose gradient is zero.
func (s *store) pieces(seg *Segment, quiet bool) pieces {
	switch {
	case seg.Param.Frozen:
		return pieces{}
	case seg.Rows == nil || !quiet && !s.lazy:
		return pieces{whole: true, b: seg.Hi - seg.Lo}
	}
	return pieces{rows: seg.Rows, width: seg.Param.Len() / seg.Param.Shape[0], lo: seg.Lo, hi: seg.Hi}
}

// next moves on to the next run, of neighbouring rows if there are some, and
// reports whether there is one.
func (p *pieces) next() bool {
	if p.whole {
		p.whole = false
		return p.b > 0
	}
	for len(p.rows) > 0 {
		n := 1
		for n < len(p.rows) && p.rows[n] == p.rows[n-1]+1 {
			n++
		}
		lo, hi := max(int(p.rows[0])*p.width, p.lo), min(int(p.rows[n-1]+1)*p.width, p.hi)
		p.rows = p.rows[n:]
		if lo < hi {
			p.a, p.b = lo-p.lo, hi-p.lo
			return true
		}
	}
	return false
}

// of returns the present run of a buffer that is as long as the segment; none of
// the zero Buf.
func (p *pieces) of(b device.Buf) device.Buf {
	if b.IsZero() {
		return b
	}
	return b.Slice(p.a, p.b)
}
