package cpu

// Convolutions on a matrix unit (parts.go): the rows of a few images are cut
// into parts, some steps of their sums at a time, and multiplied with all panels.

const (
	// partsImages is how many rows of the smallest phase share a reading of the
	// weights, partsBlock how many rows of a large image do.
	partsImages = 256
	partsBlock  = 256
	// partsChunks is how many chunks of steps are cut at once: parts of rows and of
	// two panels then lie in the first-level cache.
	partsChunks = 4
	// partsOutputs and partsSteps are the output channels for which cutting the
	// inputs pays, and the steps of 16 of a sum for which writing it does; more
	// than partsSpread outputs for a step write too much.
	partsOutputs = 64
	partsSteps   = 16
	partsSpread  = 2
)

// inParts decides from the shape alone, as measured with 1 x 1 and 3 x 3 taps.
func (t *convTask) inParts() bool {
	if t.set.parts.product == nil || t.plainInto > 0 || t.panels*block < partsOutputs {
		return false
	}
	steps, phases := 0, 0
	for i := range t.phases {
		ph := &t.phases[i]
		if ph.singles > 0 || ph.blocks%2 != 0 {
			return false
		}
		if ph.blocks > 0 {
			steps += ph.blocks
			phases++
		}
	}
	return phases > 0 && steps >= partsSteps*phases && t.panels*phases <= partsSpread*steps
}

// runConvParts runs w.conv over n images, several of them in a part, and gives w
// back.
func (k *kernels) runConvParts(w *workspace, n int) {
	t := &w.conv
	least := len(t.phases[0].rows)
	for i := range t.phases {
		least = min(least, len(t.phases[i].rows))
	}
	t.perPart = min(max(1, partsImages/max(1, least)), max(1, n/(2*k.pool.threads)))
	w.parts = panelPartsTask{set: t.set, src: t.weights, panelLen: t.panelLen}
	w.parts.dst = w.room.floats(t.panels * w.parts.dstLen())
	t.parts = w.parts.dst
	k.pool.run(w, &w.parts, t.panels)
	t.n = n
	runs := (n + t.perPart - 1) / t.perPart
	t.groups = 1
	if runs < 2*k.pool.threads && k.pool.threads > 1 {
		t.groups = min((t.panels+1)/2, (2*k.pool.threads+runs-1)/runs)
	}
	w.convParts = convParts{t}
	k.pool.run(w, &w.convParts, runs*t.groups)
	*t, w.convParts, w.parts = convTask{}, convParts{}, panelPartsTask{}
	k.give(w)
}

// panelPartsTask cuts panels of 16 columns into parts; part p is panel p.
type panelPartsTask struct {
	set      *kernelSet
	dst, src []float32
	panelLen int // floats of src, whole chunks
}

// dstLen returns the words of a panel.
func (t *panelPartsTask) dstLen() int { return partsLen(t.panelLen) }

func (t *panelPartsTask) do(_ *scratch, panel int) {
	src, dst := t.src[panel*t.panelLen:][:t.panelLen], t.dst[panel*t.dstLen():]
	for len(src) > 0 {
		t.set.parts.split(dst, src, src[block*block:], block, panelWords/3, block)
		src, dst = src[2*block*block:], dst[panelWords:]
	}
}

// convParts is convTask by parts; part i is a run of images and one of panels.
type convParts struct{ *convTask }

func (t *convParts) do(s *scratch, index int) {
	first, group := index/t.groups*t.perPart, index%t.groups
	lo, hi := group*t.panels/t.groups, (group+1)*t.panels/t.groups
	images := min(t.perPart, t.n-first)
	in, length := t.inputs(s, first, images)
	out := t.outputs(s, first, images, lo, hi)
	for i := range t.phases {
		for at := 0; at < len(t.phases[i].rows); at += partsBlock {
			ph := t.phases[i]
			ph.rows = ph.rows[at:min(at+partsBlock, len(ph.rows))]
			b := convBlock{phase: ph, in: in, length: length, images: images, lo: lo, hi: hi, out: out}
			t.block(s, &b)
		}
	}
	if t.out.halves != nil {
		for i := range images {
			lo, hi := t.panelsOf(first+i, lo, hi)
			t.out.wrote(out[i*(hi-lo):][:hi-lo], lo)
		}
	}
}

// inputs returns images, with zeros around, and the floats from one to the next.
func (t *convParts) inputs(s *scratch, first, images int) (in []float32, length int) {
	if t.image.bare() {
		return t.in.rows(&s.image, first*t.inLen, t.inLen, images, t.inLen)
	}
	length = t.image.planes * t.image.planeLen()
	in = s.image.floats(images * length)
	for i := range images {
		t.image.fill(in[i*length:], t.in, (first+i)*t.inLen, t.image.planes)
	}
	return in, length
}

// panelsOf returns where panels [from, to) of image n lie in t.out.
func (t *convParts) panelsOf(n, from, to int) (lo, hi int) {
	return (n*t.panels + from) * t.outPlane, (n*t.panels + to) * t.outPlane
}

// outputs returns where panels [from, to) of images go: in t.out, or in room for
// them alone.
func (t *convParts) outputs(s *scratch, first, images, from, to int) []float32 {
	lo, hi := t.panelsOf(first, from, to)
	if t.out.halves == nil {
		return t.out.floats[lo:]
	}
	room := s.wide.floats(images * (hi - lo))
	if t.flags&flagAccumulate != 0 {
		for i := range images {
			lo, hi := t.panelsOf(first+i, from, to)
			t.out.read(room[i*(hi-lo):], lo, hi)
		}
	}
	return room
}

// convBlock is some rows of a phase of some images, and panels [lo, hi).
type convBlock struct {
	phase
	in     []float32
	length int // floats of an image of in
	images int
	lo, hi int
	out    []float32 // where those panels go
	c      []float32 // [panel][image][row][16]
}

// count returns the rows of all images.
func (b *convBlock) count() int { return b.images * len(b.rows) }

func (t *convParts) block(s *scratch, b *convBlock) {
	b.c = s.plane.floats((b.hi - b.lo) * b.count() * block)
	if b.blocks == 0 {
		clear(b.c)
	}
	for from := 0; from < b.blocks/2; from += partsChunks {
		t.multiply(s, b, from, min(partsChunks, b.blocks/2-from))
	}
	for i := range b.images {
		t.finish(s, b, i)
	}
}

// multiply adds the products of chunks from the chunk from on to b.c, or sets it.
func (t *convParts) multiply(s *scratch, b *convBlock, from, chunks int) {
	perImage, count := len(b.rows), b.count()
	a := s.left.floats(partRows * chunkWords(chunks))
	panelLen := partsLen(t.panelLen)
	at := b.lo*panelLen + partsLen(b.panelAt) + from*panelWords
	p := &s.parts
	for row := 0; row < count; row += partRows {
		n := min(partRows, count-row)
		for r := row; r < row+n; {
			image := r / perImage
			rows := b.rows[r-image*perImage:][:min(row+n, (image+1)*perImage)-r]
			base := address(b.in, image*b.length)
			for chunk := range chunks {
				steps := (*[2]int64)(b.steps[2*(from+chunk):])
				t.set.parts.splitRows(a[(chunk*3*n+r-row)*block:], base, steps, rows, n*block)
			}
			r += len(rows)
		}
		p.setRows(n, block*4)
		p.a, p.b, p.c = address(a, 0), address(t.parts, at), address(b.c, row*block)
		p.panels, p.chunks = b.hi-b.lo, chunks
		p.panelB, p.panelC = panelLen*4, count*block*4
		if from > 0 {
			p.accumulate = 1
		}
		t.set.parts.run(p, 1)
	}
}

// finish stores the i-th image of b. Where a number of a panel is not finite its rows
// are computed by tiles, which pass infinities on as they should be: of that panel
// alone, as how many make a group goes by the threads.
func (t *convParts) finish(s *scratch, b *convBlock, i int) {
	rows, count := len(b.rows), b.count()
	planes := t.panels // from one image to the next
	if t.out.halves != nil {
		planes = b.hi - b.lo
	}
	out := b.out[i*planes*t.outPlane:]
	for p := b.lo; p < b.hi; p++ {
		lines, plane := b.c[((p-b.lo)*count+i*rows)*block:], out[(p-b.lo)*t.outPlane:][:t.outPlane]
		if sum := t.set.sum(lines[:rows*block]); sum-sum == 0 {
			t.store(plane, lines, p, b.rows)
		} else {
			t.runPhase(s, &b.phase, p, 1, b.in[i*b.length:], plane)
		}
	}
}

// store writes finished lines of a panel to a plane, or adds them.
func (t *convParts) store(plane, lines []float32, panel int, rows []row) {
	if whole := rows[len(rows)-1].c-rows[0].c == int64(len(rows)-1)*block*4; whole && t.bias == nil && t.flags&flagAccumulate == 0 {
		copy(plane[rows[0].c/4:], lines[:len(rows)*block])
		return
	}
	bias := new([block]float32)
	if t.bias != nil {
		bias = (*[block]float32)(t.bias[panel*block:])
	}
	for i := range rows {
		line, to := (*[block]float32)(lines[i*block:]), (*[block]float32)(plane[rows[i].c/4:])
		switch {
		case t.flags&flagAccumulate != 0:
			for j, v := range line {
				to[j] += v
			}
		case t.bias != nil:
			for j, v := range line {
				to[j] = v + bias[j]
			}
		default:
			*to = *line
		}
	}
}
