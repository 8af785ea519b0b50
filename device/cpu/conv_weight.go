package cpu

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// gradientTask computes the gradient of the weights in partial sums: part i is
// a run of images and a block of input channels. Its rows are (tap, channel) and
// its steps are pixels, so that one tile multiplies a stretch of dy with every
// tap of the image at once.
type gradientTask struct {
	set       *kernelSet
	d         device.Conv
	x, dy     []float32
	partial   []float32 // [group][block of C][block of K][row][16 of K]
	image     padded    // of x
	rows      []row
	steps     []int64
	groups    int
	blocksC   int // parts of the channels; 1 for a plain x
	perPart   int // planes of one part
	pixels    int // of one image of dy
	batch     int // pixels of one tile
	partialOf int // floats of one (block of C, block of K)
}

const (
	// gradientPixels is the most pixels of one tile: its stretch of dy and of x
	// share the first-level cache.
	gradientPixels = 256
	// gradientParts is how many parts there should be for the threads. It is a
	// constant, because partial sums decide the bits.
	gradientParts = 16
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
	*t = gradientTask{set: k.set, d: d, x: x.F32(), dy: dy.F32(), image: xPadded(d), blocksC: 1, pixels: d.OutH() * d.OutW()}
	t.perPart = t.image.planes
	if d.XLayout == device.Blocked16 {
		t.blocksC, t.perPart = t.image.planes, 1
	}
	t.groups = min(d.N, max(1, gradientParts/t.blocksC))
	t.tables(w)
	t.partialOf = len(t.rows) * block
	t.partial = w.sums.floats(t.groups * t.groupLen())
	k.pool.run(w, t, t.groups*t.blocksC)
	w.scatter = scatterTask{t, dw.F32()}
	k.pool.run(w, &w.scatter, device.Blocks(d.K))
	*t, w.scatter = gradientTask{}, scatterTask{}
	k.give(w)
}

// groupLen returns the floats of one group's partial sums.
func (t *gradientTask) groupLen() int { return t.blocksC * device.Blocks(t.d.K) * t.partialOf }

func (t *gradientTask) tables(w *workspace) {
	taps := t.d.R * t.d.S
	// Row order is [tap][channel] in a block, [channel][tap] in a plain image.
	channels := block
	if t.d.XLayout == device.Plain {
		channels = t.d.C
	}
	w.rows = grow(w.rows, taps*channels)
	for i := range w.rows {
		plane, tap, lane := 0, i/channels, i%channels
		if t.d.XLayout == device.Plain {
			plane, tap, lane = i/taps, i%taps, 0
		}
		w.rows[i] = row{t.image.offset(plane, tap/t.d.S*t.d.DilateH, tap%t.d.S*t.d.DilateW) + int64(lane*4), int64(i * block * 4)}
	}
	w.steps = grow(w.steps, t.pixels)
	ow := t.d.OutW()
	for i := range w.steps {
		w.steps[i] = t.image.offset(0, i/ow*t.d.StrideH, i%ow*t.d.StrideW)
	}
	t.rows, t.steps = w.rows, w.steps
	batches := (t.pixels + gradientPixels - 1) / gradientPixels
	t.batch = (t.pixels + batches - 1) / batches
}

func (t *gradientTask) do(s *scratch, index int) {
	group, c := index/t.blocksC, index%t.blocksC
	partial := t.partial[group*t.groupLen()+c*device.Blocks(t.d.K)*t.partialOf:]
	first := group * t.d.N / t.groups
	planeLen := t.d.H * t.d.W * t.image.pixel
	for n := first; n < (group+1)*t.d.N/t.groups; n++ {
		at := (n*t.image.planes + c*t.perPart) * planeLen
		x := t.x[at:][:t.perPart*planeLen]
		if !t.image.bare() {
			inside := s.image.floats(t.perPart * t.image.planeLen())
			t.image.fill(inside, x, t.perPart)
			x = inside
		}
		t.addImage(s, partial, x, n, n == first)
	}
}

// addImage adds the products of image n; the first one overwrites.
func (t *gradientTask) addImage(s *scratch, partial, x []float32, n int, first bool) {
	blocksK := device.Blocks(t.d.K)
	for p := 0; p < t.pixels; p += t.batch {
		s.tile = tile{
			a: address(x, 0), steps: unsafe.Pointer(unsafe.SliceData(t.steps[p:])),
			singles: min(t.batch, t.pixels-p),
		}
		if !first || p > 0 {
			s.tile.flags = flagAccumulate
		}
		s.tile.strideB, s.tile.strideC = t.pixels*block*4, t.partialOf*4
		for k := 0; k < blocksK; k += tilePanels {
			s.tile.panels = min(tilePanels, blocksK-k)
			s.tile.b = address(t.dy, ((n*blocksK+k)*t.pixels+p)*block)
			s.tile.c = address(partial, k*t.partialOf)
			runTile(t.set.tile, &s.tile, t.rows)
		}
	}
	s.tile = tile{}
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

// store turns the sums of one block of input and of output channels.
func (t *scatterTask) store(s *scratch, sums []float32, c, k int) {
	taps := t.d.R * t.d.S
	stride := t.d.C * taps
	at, n := k*block*stride, len(t.rows)
	if t.d.XLayout == device.Blocked16 {
		at, n = at+c*block*taps, min(block, t.d.C-c*block)*taps
		sums = channelsFirst(&s.plane, sums, taps)
	}
	flags := 0
	if t.d.Accumulate {
		flags = flagAccumulate
	}
	for i := 0; i < n; i += block {
		t.set.turn(t.dw[at+i:], sums[i*block:], nil, stride, min(block, t.d.K-k*block), min(block, n-i), flags)
	}
}

// channelsFirst returns lines [channel][tap] for lines [tap][channel] of a block.
func channelsFirst(m *memory, lines []float32, taps int) []float32 {
	if taps == 1 {
		return lines
	}
	out := m.floats(len(lines))
	for i := range taps * block {
		*(*[block]float32)(out[(i%block*taps+i/block)*block:]) = [block]float32(lines[i*block:])
	}
	return out
}
