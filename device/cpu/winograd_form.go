package cpu

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// winogradForm is F(m x m, 3 x 3) (Lavin and Gray, arXiv:1509.09308): a tile of
// m x m outputs comes from (m+2) x (m+2) inputs by as many products, its
// positions, instead of 9 m x m.
//
// The transforms work on lines of 16 channels. Each goes through a table of
// points rows of lines: Down works along columns of images, Across along rows of
// the table. Positions of a tile lie slab bytes apart. The maps of Gradient are
// the adjoints of Output, those of Input the adjoints of Data.
type winogradForm struct {
	outputs, points int // m and m + 2

	dataDown, gradientDown     func(lines *uint64, table *float32, pitch, n int)
	dataAcross, gradientAcross func(v, table *float32, slab, pitch, tiles int)
	outputAcross, inputAcross  func(table, m *float32, pitch, slab, tiles int)
	outputDown                 func(lines *uint64, table, bias *float32, pitch, n int)
	inputDown                  func(lines *uint64, table, carry *float32, pitch, n, accumulate int)
	weights                    func(u, lines, temporary *float32, slab, tap, item, n int)
	weightsGradient            func(lines, u, temporary *float32, slab, n int)
}

// winogradKernels are the forms that an instruction set has; nil without.
type winogradKernels struct{ winograd2, winograd4 *winogradForm }

const (
	mostPoints = 6
	// weightTemporary is the floats of the temporary of the weights' transforms.
	weightTemporary = 3 * mostPoints * block
)

// winogradTiles is how the tiles of one form cover the images of d.
type winogradTiles struct {
	form      *winogradForm
	d         device.Conv
	high      int // rows of tiles of an image
	wide      int // tiles of a row
	positions int
	blocksC   int
	blocksK   int
	pitch     int // bytes of a row of the table
}

func newWinogradTiles(form *winogradForm, d device.Conv) winogradTiles {
	high, wide := (d.OutH()+form.outputs-1)/form.outputs, (d.OutW()+form.outputs-1)/form.outputs
	return winogradTiles{
		form: form, d: d, high: high, wide: wide, positions: form.points * form.points,
		blocksC: device.Blocks(d.C), blocksK: device.Blocks(d.K),
		pitch: (wide*form.outputs + 2) * block * 4,
	}
}

// rows returns the rows of tiles of all images.
func (w *winogradTiles) rows() int { return w.d.N * w.high }

// imageBytes are those of an image's tiles, transformed, in so many blocks of channels.
func (w *winogradTiles) imageBytes(blocks int) int {
	return w.positions * blocks * w.high * w.wide * block * 4
}

// slabLen returns the floats between positions of blocks of channels of tiles.
// The line in between keeps the streams of a transform in different sets of the
// cache.
func slabLen(blocks, tiles int) int { return (blocks*tiles + 1) * block }

// winogradScratch is what the transforms of one thread need.
type winogradScratch struct {
	lines [mostPoints]unsafe.Pointer
	// data and gradient are tables of images, with borders of zeros; sink is a
	// table of what comes from positions.
	data, gradient, sink memory
	// outside holds a line of zeros that stands for rows above and below the
	// image, dump one for rows that nobody wants.
	outside, dump memory
	carry         memory
	// rows are lines of a plane that has 16 bits, as float32.
	rows      memory
	v, m, u   memory
	whole     memory // numbers that are cut into parts at once
	temporary memory
}

// start makes the scratch ready for images of w: the borders of the table and
// the line of zeros.
func (s *winogradScratch) start(w *winogradTiles) {
	clear(s.data.floats(w.form.points * w.pitch / 4))
	clear(s.gradient.floats(w.form.points * w.pitch / 4))
	width := max(w.d.W, w.d.OutW()) * block
	clear(s.outside.floats(width))
	s.dump.floats(width)
	s.rows.floats(mostPoints * width)
	s.sink.floats(w.form.points * w.pitch / 4)
	s.temporary.floats(weightTemporary)
}

func (s *winogradScratch) list() *uint64 { return (*uint64)(unsafe.Pointer(&s.lines)) }

// A plane of images is passed as a tensor and where in it the plane starts: a copy
// of a tensor's slice, made of the words that were just stored, waits until all
// that was stored before is in the cache.

// line sets lines[i] to row y of that plane, which is read, or to a row of zeros
// when there is none.
func (s *winogradScratch) line(i int, from *tensor, at, y, h, w int) {
	if y < 0 || y >= h {
		s.lines[i] = unsafe.Pointer(unsafe.SliceData(s.outside.buf.F32()))
		return
	}
	if from.halves == nil {
		s.lines[i] = address(from.floats, at+y*w*block)
		return
	}
	row := from.read(s.row(i, w), at+y*w*block, at+(y+1)*w*block)
	s.lines[i] = unsafe.Pointer(unsafe.SliceData(row))
}

// target is line for a row that is stored, or added to; see wrote.
func (s *winogradScratch) target(i int, to *tensor, at, y, h, w int, added bool) {
	if y < 0 || y >= h {
		s.lines[i] = unsafe.Pointer(unsafe.SliceData(s.dump.buf.F32()))
		return
	}
	if to.halves == nil {
		s.lines[i] = address(to.floats, at+y*w*block)
		return
	}
	row := to.place(s.row(i, w), at+y*w*block, at+(y+1)*w*block, added)
	s.lines[i] = unsafe.Pointer(unsafe.SliceData(row))
}

// wrote rounds what was stored in target i of a plane.
func (s *winogradScratch) wrote(i int, to *tensor, at, y, h, w int) {
	if to.halves != nil && y >= 0 && y < h {
		to.wrote(s.row(i, w)[:w*block], at+y*w*block)
	}
}

// row is where row i of w pixels is widened.
func (s *winogradScratch) row(i, w int) []float32 { return s.rows.buf.F32()[i*w*block:] }

// fromData transforms row ty of tiles of the plane at of x into v.
func (w *winogradTiles) fromData(s *winogradScratch, v []float32, x *tensor, at, ty, slab int) {
	table := s.data.buf.F32()
	for i := range w.form.points {
		s.line(i, x, at, ty*w.form.outputs+i-w.d.PadH, w.d.H, w.d.W)
	}
	if n := min(w.d.W, w.pitch/(block*4)-w.d.PadW); n > 0 {
		w.form.dataDown(s.list(), &table[w.d.PadW*block], w.pitch, n)
	}
	w.form.dataAcross(&v[0], &table[0], slab*4, w.pitch, w.wide)
}

// fromGradient transforms row ty of tiles of the plane at of dy into v.
func (w *winogradTiles) fromGradient(s *winogradScratch, v []float32, dy *tensor, at, ty, slab int) {
	table := s.gradient.buf.F32()
	h, width := w.d.OutH(), w.d.OutW()
	for i := range w.form.outputs {
		s.line(i, dy, at, ty*w.form.outputs+i, h, width)
	}
	w.form.gradientDown(s.list(), &table[0], w.pitch, width)
	w.form.gradientAcross(&v[0], &table[0], slab*4, w.pitch, w.wide)
}

// toOutput transforms m into row ty of tiles of the plane at of y.
func (w *winogradTiles) toOutput(s *winogradScratch, y *tensor, at int, m, bias []float32, ty, slab int) {
	table := s.sink.buf.F32()
	w.form.outputAcross(&table[0], &m[0], w.pitch, slab*4, w.wide)
	h, width := w.d.OutH(), w.d.OutW()
	for i := range w.form.outputs {
		s.target(i, y, at, ty*w.form.outputs+i, h, width, false)
	}
	w.form.outputDown(s.list(), &table[0], &bias[0], w.pitch, width)
	for i := range w.form.outputs {
		s.wrote(i, y, at, ty*w.form.outputs+i, h, width)
	}
}

// toInput transforms m into row ty of tiles of the plane at of dx. The rows of a
// plane have to come in order: carry has the lines that the tiles above share.
func (w *winogradTiles) toInput(s *winogradScratch, dx *tensor, at int, m, carry []float32, ty, slab int) {
	table := s.sink.buf.F32()
	if ty == 0 {
		clear(carry)
	}
	w.form.inputAcross(&table[0], &m[0], w.pitch, slab*4, w.wide)
	w.addLines(s, dx, at, table, carry, ty)
	if ty == w.high-1 {
		clear(table)
		w.addLines(s, dx, at, table, carry, ty+1)
	}
}

// carryLen returns the floats of a plane's carry.
func (w *winogradTiles) carryLen() int { return 2 * w.pitch / 4 }

func (w *winogradTiles) addLines(s *winogradScratch, dx *tensor, at int, table, carry []float32, ty int) {
	for i := range w.form.outputs {
		s.target(i, dx, at, ty*w.form.outputs+i-w.d.PadH, w.d.H, w.d.W, w.d.Accumulate)
	}
	accumulate := 0
	if w.d.Accumulate {
		accumulate = 1
	}
	border := w.d.PadW * block
	w.form.inputDown(s.list(), &table[border], &carry[border], w.pitch, w.d.W, accumulate)
	for i := range w.form.outputs {
		s.wrote(i, dx, at, ty*w.form.outputs+i-w.d.PadH, w.d.H, w.d.W)
	}
}
