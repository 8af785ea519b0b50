package cpu

import "sync/atomic"

// The gradient of the weights on a matrix unit (parts.go). Its rows are runs of
// 16 channels at one tap, two of them a unit; its steps are pixels, taken 16 at a
// time: two such halves make a chunk.

const (
	// gradientTaps is how many taps of planes of x share the parts of dy.
	gradientTaps = 36
	// half is the pixels that lie side by side in a chunk.
	half = partDepth / 2
)

// inParts decides from the shape alone: with few channels the turning of lines
// takes longer than the products, with few taps of them all the more.
func (t *gradientTask) inParts() bool {
	const taps, channels, outputs = 9, 64, 128
	return t.set.parts.product != nil && t.image.pixel == block && t.d.K >= outputs &&
		(t.d.R*t.d.S >= taps && t.d.C >= channels || t.d.C >= 2*channels)
}

// halves returns how many runs of 16 pixels an image of dy makes.
func (t *gradientTask) halves() int { return (t.pixels + half - 1) / half }

// gradientParts is gradientTask by parts.
type gradientParts struct{ *gradientTask }

func (t *gradientParts) do(s *scratch, index int) {
	t.each(s, index, t.addImages)
	group, plane := index/t.parts, index%t.parts*t.perPart
	planes := min(t.perPart, t.image.planes-plane)
	length := planes * t.blocksK() * t.partialOf
	sums := t.partial[group*t.groupLen()+plane*t.blocksK()*t.partialOf:][:length]
	for len(sums) > 0 {
		if sum := t.set.sum(sums[:t.partialOf]); sum-sum != 0 {
			atomic.StoreUint32(&t.infinite, 1)
			return
		}
		sums = sums[t.partialOf:]
	}
}

// addImages adds the products of images from n on; the first ones overwrite.
func (t *gradientParts) addImages(s *scratch, partial, x []float32, rows []row, n, images int, first bool) {
	all := images * t.halves()
	for from := 0; from < all; from += 2 * partsChunks {
		end := min(from+2*partsChunks, all)
		chunks := (end - from + 1) / 2
		b := s.winograd.v.floats(t.blocksK() * chunks * panelWords)
		for k := range t.blocksK() {
			for c := range chunks {
				f, g := t.lines(s, 0, n, k, from+2*c, end), t.lines(s, 1, n, k, from+2*c+1, end)
				t.set.parts.split(b[(k*chunks+c)*panelWords:], f, g, block, panelWords/3, half)
			}
		}
		t.addChunks(s, partial, x, b, rows, from, end, !first || from > 0)
	}
}

// lines returns the lines of dy of one half of panel k, zero beyond the image's
// last and from the half to on. They may be staged in the i-th place for that.
func (t *gradientParts) lines(s *scratch, i, n, k, at, to int) []float32 {
	stage := s.winograd.u.floats(2 * half * block)[i*half*block:][:half*block]
	if at >= to {
		clear(stage)
		return stage
	}
	image, first := at/t.halves(), at%t.halves()*half
	count := min(half, t.pixels-first)
	lo := (((n+image)*t.blocksK()+k)*t.pixels + first) * block
	lines := t.dy.read(stage, lo, lo+count*block)
	if count == half {
		return lines
	}
	clear(stage[copy(stage, lines):]) // which may be there already
	return stage
}

// addChunks multiplies all rows of x with the parts of dy at b: the halves [from,
// to).
func (t *gradientParts) addChunks(s *scratch, partial, x, b []float32, rows []row, from, to int, accumulate bool) {
	chunks := (to - from + 1) / 2
	p := &s.parts
	for at := 0; at < len(rows); at += partRows {
		n := min(partRows, len(rows)-at)
		a := s.left.floats(n * chunkWords(chunks))
		for r := 0; r < n; r += half {
			for c := range chunks {
				t.turn(s, a[(c*3*n+r)*block:], x, rows[at+r].a, from+2*c, to, n*block)
			}
		}
		p.setRows(n, block*4)
		p.a, p.b, p.c = address(a, 0), address(b, 0), address(partial, int(rows[at].c/4))
		if n > half {
			p.secondC = int(rows[at+half].c - rows[at].c)
		}
		p.panels, p.chunks = t.blocksK(), chunks
		p.panelB, p.panelC = chunks*panelWords*4, t.partialOf*4
		if accumulate {
			p.accumulate = 1
		}
		t.set.parts.run(p, 1)
	}
}

// turn cuts 16 channels of a chunk of pixels into parts whose lines are channels.
func (t *gradientParts) turn(s *scratch, dst, x []float32, offset int64, at, to, part int) {
	squares := s.winograd.temporary.floats(3 * half * block)
	for i := range 2 {
		square := squares[i*half*block:][:half*block]
		if at+i >= to {
			clear(square)
			continue
		}
		image, first := (at+i)/t.halves(), (at+i)%t.halves()*half
		count := min(half, t.pixels-first)
		steps := t.steps[image*t.pixels+first:][:count]
		if step := int(steps[count-1]-steps[0]) / 4; count == half && t.straight {
			t.set.transpose(square, x[int(offset+steps[0])/4:], step/(half-1), half)
			continue
		}
		stage := squares[2*half*block:]
		for j, step := range steps {
			*(*[block]float32)(stage[j*block:]) = *(*[block]float32)(x[int(offset+step)/4:])
		}
		clear(stage[count*block:])
		t.set.transpose(square, stage, block, half)
	}
	t.set.parts.split(dst, squares, squares[half*block:], half, part, half)
}
