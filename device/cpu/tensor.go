package cpu

import "github.com/gradfusion/gradfusion/device"

// tensor is a buffer of float32, or of 16 bits that are converted a stretch at a
// time on their way through the cache. The zero tensor stands for the zero Buf.
type tensor struct {
	floats []float32 // or
	halves []uint16
	kind   *halfKernels
}

func (set *kernelSet) tensor(b device.Buf) tensor {
	if device.IsHalf(b) {
		return tensor{halves: b.U16(), kind: set.half(b.Type)}
	}
	return tensor{floats: b.F32()}
}

func (t *tensor) missing() bool { return t.floats == nil && t.halves == nil }

// read returns elements [lo, hi), in room where they have to be widened.
func (t *tensor) read(room []float32, lo, hi int) []float32 {
	if t.halves == nil {
		return t.floats[lo:hi]
	}
	room = room[:hi-lo]
	t.kind.widen(room, t.halves[lo:hi])
	return room
}

// place returns where to store elements [lo, hi), or to add to them: there or in
// room. Give what was stored to wrote.
func (t *tensor) place(room []float32, lo, hi int, added bool) []float32 {
	if t.halves == nil || added {
		return t.read(room, lo, hi)
	}
	return room[:hi-lo]
}

// wrote rounds what was stored in a place.
func (t *tensor) wrote(stored []float32, lo int) {
	if t.halves != nil {
		t.kind.narrow(t.halves[lo:lo+len(stored)], stored)
	}
}

// put stores src from the element lo on.
func (t *tensor) put(src []float32, lo int) {
	if t.halves != nil {
		t.kind.narrow(t.halves[lo:lo+len(src)], src)
		return
	}
	copy(t.floats[lo:], src)
}

// take fills dst with the elements from lo on: the opposite of put.
func (t *tensor) take(dst []float32, lo int) {
	if t.halves != nil {
		t.kind.widen(dst, t.halves[lo:lo+len(dst)])
		return
	}
	copy(dst, t.floats[lo:lo+len(dst)])
}

// rows returns n rows of width elements, from the element at on and stride
// apart, and the floats from one to the next. What has to be widened is in m.
func (t *tensor) rows(m *memory, at, stride, n, width int) (data []float32, next int) {
	if t.halves == nil {
		return t.floats[at:], stride
	}
	data = m.floats(n * width)
	if width == stride {
		t.kind.widen(data, t.halves[at:at+n*width])
		return data, width
	}
	for i := range n {
		t.kind.widen(data[i*width:][:width], t.halves[at+i*stride:][:width])
	}
	return data, width
}
