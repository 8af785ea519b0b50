package cpu

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// gradientTask computes the gradient of the weights in partial sums: part i is
// a run of images and of blocks of input channels. Its rows are (block, tap,
// channel) and its steps are pixels, so that one tile multiplies a stretch of dy
// with every tap of the image at once.
type gradientTask struct {
	set       *kernelSet
	d         device.Conv
	x, dy     tensor
	partial   []float32 // [group][block of C][block of K][tap, channel][16 of K]
	image     padded    // of x
	rows      []row
	steps     []int64
	groups    int
	blocksC   int // of x; 1 for a plain x
	perPart   int // planes of one part
	parts     int // of the channels
	pixels    int // of one image of dy
	joined    int // images of one tile
	batch     int // pixels of one tile, when it is not several images
	partialOf int // floats of one (block of C, block of K)
	parted    bool
	straight  bool   // 16 pixels of dy are equally far apart in x
	infinite  uint32 // set atomically when parts met a number that is not finite
}

const (
	// gradientPixels is the most pixels of one tile: its stretch of dy and of x
	// share the first-level cache.
	gradientPixels = 256
	// gradientRows is how many rows should share a reading of dy.
	gradientRows = 128
	// gradientLeast is how many parts there should be for the threads. It is a
	// constant, because partial sums decide the bits.
	gradientLeast = 16
	// gradientSums bounds the bytes of the partial sums of several groups.
	gradientSums = 8 << 20
)

func (k *kernels) ConvBackwardWeight(d device.Conv, dw, x, dy device.Buf) {
	requireConv("ConvBackwardWeight", d, "x", x, "dy", dy, "dw", dw)
	if d.N == 0 {
		if !d.Accumulate {
			clear(dw.F32()[:d.WeightLen()])
		}
		return
	}
	if d = dilated(d); d.Groups > 1 {
		k.groupedBackwardWeight(d, dw, x, dy)
		return
	}
	if form := k.winogradFor(d); form != nil {
		k.winogradBackwardWeight(form, d, dw, x, dy)
		return
	}
	w := k.take()
	t := &w.gradient
	*t = gradientTask{set: k.set, d: d, x: k.set.tensor(x), dy: k.set.tensor(dy), image: xPadded(d), pixels: d.OutH() * d.OutW()}
	if t.parted = t.inParts(); t.parted {
		t.prepare(w)
		w.gradientParts = gradientParts{t}
		k.pool.run(w, &w.gradientParts, t.groups*t.parts)
		w.gradientParts = gradientParts{}
	}
	if !t.parted || t.infinite != 0 {
		// Tiles pass infinities on as they should be.
		t.parted = false
		t.prepare(w)
		k.pool.run(w, t, t.groups*t.parts)
	}
	w.scatter = scatterTask{t, dw.F32()}
	k.pool.run(w, &w.scatter, device.Blocks(d.K))
	*t, w.scatter = gradientTask{}, scatterTask{}
	k.give(w)
}

// prepare cuts the task and finds its tables and memory.
func (t *gradientTask) prepare(w *workspace) {
	t.cut()
	t.tables(w)
	t.partial = w.room.floats(t.groups * t.groupLen())
}

// blocksK returns the panels of dy.
func (t *gradientTask) blocksK() int { return device.Blocks(t.d.K) }

// cut sets the sizes of parts and tiles from the shape alone.
func (t *gradientTask) cut() {
	taps := t.d.R * t.d.S
	t.blocksC, t.perPart, t.partialOf = 1, t.image.planes, t.image.planes*taps*block
	if t.d.XLayout == device.Blocked16 {
		t.blocksC, t.partialOf = t.image.planes, taps*block*block
		t.perPart = min(t.blocksC, max(1, gradientRows/(taps*block)))
	}
	atLeast := gradientLeast
	if t.parted {
		t.perPart = min(t.blocksC, max(1, gradientTaps/taps))
		t.straight = t.d.OutW()%half == 0 || t.image.bare() && taps == 1 && t.d.StrideH == 1 && t.d.StrideW == 1
		atLeast /= 2
	}
	t.parts = (t.image.planes + t.perPart - 1) / t.perPart
	t.groups = min(t.d.N, max(1, atLeast/t.parts))
	t.groups = max(1, min(t.groups, gradientSums/(4*t.groupLen())))
	t.joined = max(1, min(gradientPixels/t.pixels, t.d.N/t.groups))
	batches := (t.pixels + gradientPixels - 1) / gradientPixels
	t.batch = (t.pixels + batches - 1) / batches
}

// groupLen returns the floats of one group's partial sums.
func (t *gradientTask) groupLen() int { return t.blocksC * device.Blocks(t.d.K) * t.partialOf }

func (t *gradientTask) tables(w *workspace) {
	taps := t.d.R * t.d.S
	// Row order is [block][tap][channel], or [channel][tap] in a plain image.
	perPlane, nextPlane := taps*block, device.Blocks(t.d.K)*t.partialOf
	if t.d.XLayout == device.Plain {
		perPlane, nextPlane = taps, taps*block
	}
	w.rows = grow(w.rows, t.perPart*perPlane)
	for i := range w.rows {
		plane, in := i/perPlane, i%perPlane
		tap, lane := in/block, in%block
		if t.d.XLayout == device.Plain {
			tap, lane = in, 0
		}
		w.rows[i] = row{
			t.image.offset(plane, tap/t.d.S*t.d.DilateH, tap%t.d.S*t.d.DilateW) + int64(lane*4),
			int64((plane*nextPlane + in*block) * 4),
		}
	}
	w.steps = grow(w.steps, t.joined*t.pixels)
	ow := t.d.OutW()
	for i := range w.steps {
		pixel := i % t.pixels
		w.steps[i] = int64(i/t.pixels*t.imageLen()*4) + t.image.offset(0, pixel/ow*t.d.StrideH, pixel%ow*t.d.StrideW)
	}
	t.rows, t.steps = w.rows, w.steps
}

// planeLen returns the floats of one plane of x.
func (t *gradientTask) planeLen() int { return t.d.H * t.d.W * t.image.pixel }

// imageLen returns the floats from one image of a tile to the next.
func (t *gradientTask) imageLen() int {
	if t.image.bare() {
		return t.image.planes * t.planeLen()
	}
	return t.perPart * t.image.planeLen()
}

func (t *gradientTask) do(s *scratch, index int) { t.each(s, index, t.addImages) }

// each calls add for the images of a part, a few at a time.
func (t *gradientTask) each(s *scratch, index int, add func(s *scratch, partial, x []float32, rows []row, n, images int, first bool)) {
	group, plane := index/t.parts, index%t.parts*t.perPart
	planes := min(t.perPart, t.image.planes-plane)
	rows := t.rows[:planes*len(t.rows)/t.perPart]
	partial := t.partial[group*t.groupLen():]
	if t.blocksC > 1 {
		partial = partial[plane*device.Blocks(t.d.K)*t.partialOf:]
	}
	first, end := group*t.d.N/t.groups, (group+1)*t.d.N/t.groups
	for n := first; n < end; n += t.joined {
		images := min(t.joined, end-n)
		add(s, partial, t.images(s, n, plane, images, planes), rows, n, images, n == first)
	}
}

// images returns planes of images from n on, with zeros around.
func (t *gradientTask) images(s *scratch, n, plane, images, planes int) []float32 {
	at, next := (n*t.image.planes+plane)*t.planeLen(), t.image.planes*t.planeLen()
	switch {
	case !t.image.bare():
		inside := s.image.floats(images * t.imageLen())
		for i := range images {
			t.image.fill(inside[i*t.imageLen():], t.x, at+i*next, planes)
		}
		return inside
	case t.x.halves == nil:
		return t.x.floats[at:]
	}
	wide := s.image.floats(images * next)
	for i := range images {
		t.x.read(wide[i*next:], at+i*next, at+i*next+planes*t.planeLen())
	}
	return wide
}

// addImages adds the products of images from n on; the first ones overwrite.
func (t *gradientTask) addImages(s *scratch, partial, x []float32, rows []row, n, images int, first bool) {
	blocksK := device.Blocks(t.d.K)
	batch := t.batch
	if t.joined > 1 {
		batch = images * t.pixels
	}
	for p := 0; p < images*t.pixels; p += batch {
		s.tile = tile{
			a: address(x, 0), steps: unsafe.Pointer(unsafe.SliceData(t.steps[p:])),
			singles: min(batch, images*t.pixels-p), strideC: t.partialOf * 4,
		}
		if !first || p > 0 {
			s.tile.flags = flagAccumulate
		}
		for k := 0; k < blocksK; k += tilePanels {
			s.tile.panels = min(tilePanels, blocksK-k)
			switch at := ((n*blocksK+k)*t.pixels + p) * block; {
			case t.joined > 1:
				s.tile.b, s.tile.strideB = address(t.join(s, n, images, k, s.tile.panels), 0), batch*block*4
			case t.dy.halves == nil:
				s.tile.b, s.tile.strideB = address(t.dy.floats, at), t.pixels*block*4
			default:
				wide, _ := t.dy.rows(&s.plane, at, t.pixels*block, s.tile.panels, s.tile.singles*block)
				s.tile.b, s.tile.strideB = address(wide, 0), s.tile.singles*block*4
			}
			s.tile.c = address(partial, k*t.partialOf)
			runTile(t.set.tile, &s.tile, rows)
		}
	}
	s.tile = tile{}
}

// join copies panels of dy from k on, each of all images.
func (t *gradientTask) join(s *scratch, n, images, k, panels int) []float32 {
	plane := t.pixels * block
	out := s.plane.floats(panels * images * plane)
	for p := range panels {
		for i := range images {
			t.dy.take(out[(p*images+i)*plane:][:plane], ((n+i)*t.blocksK()+k+p)*plane)
		}
	}
	return out
}

// scatterTask adds the partial sums from the first group to the last and stores
// them in the order of the weights. Part k is 16 output channels.
type scatterTask struct {
	*gradientTask
	dw []float32
}

func (t *scatterTask) do(s *scratch, k int) {
	blocksK := device.Blocks(t.d.K)
	for c := range t.blocksC {
		at := (c*blocksK + k) * t.partialOf
		sums := t.partial[at:][:t.partialOf]
		for g := 1; g < t.groups; g++ {
			t.set.add(sums, sums, t.partial[g*t.groupLen()+at:][:t.partialOf])
		}
		t.store(s, sums, c, k)
	}
}

func (t *scatterTask) store(s *scratch, sums []float32, c, k int) {
	taps := t.d.R * t.d.S
	stride := t.d.C * taps
	n := stride
	if t.d.XLayout == device.Blocked16 {
		n = min(block, t.d.C-c*block) * taps
		if taps > 1 { // from [tap][channel] to [channel][tap]
			lines := s.plane.floats(t.partialOf)
			for i := range taps * block {
				*(*[block]float32)(lines[i*block:]) = [block]float32(sums[(i%taps*block+i/taps)*block:])
			}
			sums = lines
		}
	}
	t.set.storeLines(t.dw[k*block*stride+c*block*taps:], sums, stride, n, min(block, t.d.K-k*block), t.d.Accumulate)
}
