package cpu

import "github.com/gradfusion/gradfusion/device"

// side is one factor of a product: count vectors, which are stored one after
// another (along) or side by side. Numbers of 16 bits are widened where they are
// packed, a few rows at a time.
type side struct {
	data   []float32 // or
	halves []uint16  // which widen reads
	widen  func(dst []float32, src []uint16)
	count  int
	stride int // from one stored row to the next
	along  bool
}

func (set *kernelSet) side(b device.Buf, count, stride int, along bool) side {
	s := side{count: count, stride: stride, along: along}
	switch b.Type {
	case device.F16, device.BF16:
		s.halves, s.widen = b.U16(), set.half(b.Type).widen
	default:
		s.data = b.F32()
	}
	return s
}

// rows returns columns [from, to) of n stored rows from the row first, and the
// floats from one row to the next. The numbers may be in m.
func (s *side) rows(m *memory, first, n, from, to int) (data []float32, stride int) {
	if from == to {
		return nil, 0 // there may be no rows to start at
	}
	if s.widen == nil {
		return s.data[first*s.stride+from:], s.stride
	}
	width := to - from
	data = m.floats(n * width)
	for i := range n {
		s.widen(data[i*width:][:width], s.halves[(first+i)*s.stride+from:][:width])
	}
	return data, width
}

const (
	// widenEachTime is the most groups of panels for each of which the rows of
	// the other side are widened again, in the cache. For more of them it is done
	// once, in memory.
	widenEachTime = 2
	wideningRows  = 16
)

// wideningTask widens a side whose vectors are stored one after another; part i
// is wideningRows of them.
type wideningTask struct {
	dst   []float32
	src   side
	depth int
}

func (t *wideningTask) do(_ *scratch, index int) {
	for i := index * wideningRows; i < min((index+1)*wideningRows, t.src.count); i++ {
		t.src.widen(t.dst[i*t.depth:][:t.depth], t.src.halves[i*t.src.stride:][:t.depth])
	}
}
