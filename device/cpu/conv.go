package cpu

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// phase is one tile's worth of a convolution: which pixels it computes, from
// which taps. A forward convolution is one phase; the gradient of the input of
// a strided one is a phase for each remainder of the position.
type phase struct {
	rows            []row
	steps           []int64
	blocks, singles int
	panelAt         int // where its weights start in a panel, in floats
}

// convTask runs phases over images: part i is an image and a run of panels
// (blocks of 16 output channels).
type convTask struct {
	set      *kernelSet
	in, out  tensor
	weights  []float32 // panels
	bias     []float32 // whole panels, or nil
	image    padded    // of in
	inLen    int       // floats of one image
	outPlane int       // floats of one plane of 16 channels of out
	phases   []phase
	panels   int
	panelLen int
	// NaN times the zero weights of padding channels is NaN, so those are
	// cleared and not left to the arithmetic.
	lastMask     columnMask
	lastIsNarrow bool
	groups       int
	flags        int
	plainInto    int // when out is plain: its channels; else 0

	// Where products are in parts:
	n       int       // images
	perPart int       // of which a part has so many
	parts   []float32 // weights
}

func requireConv(kernel string, d device.Conv, xName string, x device.Buf, yName string, y device.Buf, wName string, w device.Buf) {
	d.Check(kernel)
	device.RequireFloat(kernel, xName, x, d.XLen())
	device.RequireFloat(kernel, yName, y, d.YLen())
	device.RequireFloat(kernel, wName, w, d.WeightLen())
}

// dilated returns d with its dilation written out.
func dilated(d device.Conv) device.Conv {
	d.DilateH, d.DilateW = max(1, d.DilateH), max(1, d.DilateW)
	return d
}

// xPadded returns how the taps of d see one image of x.
func xPadded(d device.Conv) padded {
	planes, pixel := d.C, 1
	if d.XLayout == device.Blocked16 {
		planes, pixel = device.Blocks(d.C), block
	}
	reachH, reachW := (d.OutH()-1)*d.StrideH+d.ReachH(), (d.OutW()-1)*d.StrideW+d.ReachW()
	return around(planes, d.H, d.W, d.PadH, d.PadW, reachH, reachW, pixel)
}

func (k *kernels) ConvForward(d device.Conv, y, x, weights, bias device.Buf) {
	requireConv("ConvForward", d, "x", x, "y", y, "w", weights)
	if !bias.IsZero() {
		device.Require("ConvForward", "bias", bias, device.F32, d.K)
	}
	if d.N == 0 {
		return
	}
	if d = dilated(d); d.Groups > 1 {
		k.groupedForward(d, y, x, weights, bias)
		return
	}
	if form := k.winogradFor(d); form != nil {
		k.winogradForward(form, d, y, x, weights, bias)
		return
	}
	w := k.take()
	t := &w.conv
	*t = convTask{
		set: k.set, in: k.set.tensor(x), out: k.set.tensor(y), image: xPadded(d),
		inLen: d.XLen() / d.N, outPlane: d.OutH() * d.OutW() * block, panels: device.Blocks(d.K),
	}
	t.lastIsNarrow = t.lastMask.last(d.K)
	t.forwardPhase(w, d)
	t.weights = k.packForward(w, d, weights)
	t.panelLen = len(t.weights) / t.panels
	if !bias.IsZero() {
		t.bias = padBias(&w.bias, bias.F32()[:d.K])
	}
	k.runConv(w, d.N)
}

// runConv runs w.conv over n images and gives w back.
func (k *kernels) runConv(w *workspace, n int) {
	t := &w.conv
	if t.inParts() {
		k.runConvParts(w, n)
		return
	}
	t.groups = 1
	if n < 4*k.pool.threads && k.pool.threads > 1 {
		t.groups = min(t.panels, (4*k.pool.threads+n-1)/n)
	}
	k.pool.run(w, t, n*t.groups)
	*t = convTask{}
	k.give(w)
}

// forwardPhase makes every output pixel a row and every tap a step.
func (t *convTask) forwardPhase(w *workspace, d device.Conv) {
	oh, ow := d.OutH(), d.OutW()
	w.rows = grow(w.rows, oh*ow)
	for i := range w.rows {
		w.rows[i] = row{t.image.offset(0, i/ow*d.StrideH, i%ow*d.StrideW), int64(i * block * 4)}
	}
	taps := d.R * d.S
	w.steps = grow(w.steps, t.image.planes*taps)
	for i := range w.steps {
		tap := i % taps
		w.steps[i] = t.image.offset(i/taps, tap/d.S*d.DilateH, tap%d.S*d.DilateW)
	}
	w.phases = grow(w.phases, 1)
	w.phases[0] = phase{rows: w.rows, steps: w.steps, blocks: len(w.steps)}
	if d.XLayout == device.Plain {
		w.phases[0].blocks, w.phases[0].singles = 0, len(w.steps)
	}
	t.phases = w.phases
}

func (t *convTask) do(s *scratch, index int) {
	n, group := index/t.groups, index%t.groups
	lo, hi := group*t.panels/t.groups, (group+1)*t.panels/t.groups
	in := t.input(s, n)
	for p := lo; p < hi; p += tilePanels {
		count := min(tilePanels, hi-p)
		out := t.destination(s, n, p, count)
		for i := range t.phases {
			t.runPhase(s, &t.phases[i], p, count, in, out)
		}
		if t.plainInto > 0 {
			for q := range count {
				t.unblock(n, p+q, out[q*t.outPlane:][:t.outPlane])
			}
		} else {
			t.out.wrote(out, (n*t.panels+p)*t.outPlane)
		}
	}
}

// input returns image n, with zeros around.
func (t *convTask) input(s *scratch, n int) []float32 {
	if !t.image.bare() {
		inside := s.image.floats(t.image.planes * t.image.planeLen())
		t.image.fill(inside, t.in, n*t.inLen, t.image.planes)
		return inside
	}
	data, _ := t.in.rows(&s.image, n*t.inLen, t.inLen, 1, t.inLen)
	return data[:t.inLen]
}

func (t *convTask) runPhase(s *scratch, ph *phase, panel, count int, in, out []float32) {
	s.tile = tile{
		a: address(in, 0), b: address(t.weights, panel*t.panelLen+ph.panelAt), c: address(out, 0),
		steps: unsafe.Pointer(unsafe.SliceData(ph.steps)), blocks: ph.blocks, singles: ph.singles, flags: t.flags,
		panels: count, strideB: t.panelLen * 4, strideC: t.outPlane * 4,
	}
	if t.plainInto > 0 {
		s.tile.flags = 0 // out is scratch: unblock adds
	}
	if t.lastIsNarrow && panel+count == t.panels {
		s.tile.flags |= flagClear
		s.tile.mask = unsafe.Pointer(&t.lastMask)
	}
	if t.bias != nil {
		s.tile.bias = address(t.bias, panel*tileColumns)
	}
	runTile(t.set.tile, &s.tile, ph.rows)
	s.tile = tile{}
}

// destination returns the planes that count panels from p of image n are
// written to.
func (t *convTask) destination(s *scratch, n, p, count int) []float32 {
	if t.plainInto > 0 {
		return s.plane.floats(count * t.outPlane)
	}
	var room []float32
	if t.out.halves != nil {
		room = s.plane.floats(count * t.outPlane)
	}
	lo := (n*t.panels + p) * t.outPlane
	return t.out.place(room, lo, lo+count*t.outPlane, t.flags&flagAccumulate != 0)
}

// unblock stores or adds a finished plane into the plain image n.
func (t *convTask) unblock(n, p int, plane []float32) {
	pixels, first := t.outPlane/block, p*block
	width := min(block, t.plainInto-first)
	t.set.storeLines(t.out.floats[(n*t.plainInto+first)*pixels:], plane, pixels, pixels, width, t.flags&flagAccumulate != 0)
}
