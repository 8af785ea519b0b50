package cpu

import "unsafe"

// The assembly is in neon_*_arm64.s; neon_arm64.h has the instructions that Go's
// assembler does not know.

//go:noescape
func tileNEON(t *tile)

//go:noescape
func transposeNEON(dst, src *float32, stride, n int)

//go:noescape
func addNEON(dst, a, b *float32, n int)

//go:noescape
func mulNEON(dst, a, b *float32, n int)

//go:noescape
func maxNEON(dst, a, b *float32, n int)

//go:noescape
func minNEON(dst, a, b *float32, n int)

//go:noescape
func reluBackwardNEON(dst, a, b *float32, n int)

//go:noescape
func reluBackwardAddNEON(dx, dy, y *float32, n int)

//go:noescape
func scaleNEON(dst, a *float32, s float32, n int)

//go:noescape
func reluNEON(y, x *float32, n int)

//go:noescape
func sumSquaresNEON(out *float64, x *float32, blocks int)

//go:noescape
func widenF16NEON(dst *float32, src *uint16, n int)

//go:noescape
func addF16NEON(dst *float32, src *uint16, n int)

//go:noescape
func widenBF16NEON(dst *float32, src *uint16, n int)

//go:noescape
func addBF16NEON(dst *float32, src *uint16, n int)

//go:noescape
func narrowF16NEON(dst *uint16, src *float32, n int)

//go:noescape
func narrowBF16NEON(dst *uint16, src *float32, n int)

//go:noescape
func sgdNEON(w, grad, numbers *float32, n int)

//go:noescape
func sgdMomentumNEON(w, grad, momentum, numbers *float32, n, nesterov int)

//go:noescape
func adamNEON(w, grad, m, v, numbers *float32, n int)

//go:noescape
func momentsNEON(out, x *float32, pixels int)

//go:noescape
func normForwardNEON(y, x, residual, numbers *float32, pixels, relu int)

//go:noescape
func normBackwardSumsNEON(out, dy, x, y, numbers *float32, pixels int)

//go:noescape
func normBackwardOutputsNEON(dx, dresidual, dy, x, y, numbers *float32, pixels, accumulate int)

// neonRows is the most rows of a group: 5 x 16 sums fill the twenty vector
// registers that a line of B and a register for each row leave free.
const neonRows = 5

// neonPanel computes a tile of one panel. NEON has no masked stores, so a narrow
// panel goes through memory of its own.
func neonPanel(t *tile) {
	if t.flags&flagMask == 0 {
		tileNEON(t)
		return
	}
	rows := unsafe.Slice((*row)(t.rows), t.count)
	for len(rows) > 0 {
		n := min(neonRows, len(rows))
		t.narrow(rows[:n])
		rows = rows[n:]
	}
}

// narrow computes one group of rows of a narrow panel.
func (t *tile) narrow(rows []row) {
	var sums [neonRows * tileColumns]float32
	var group [neonRows]row
	for i, r := range rows {
		group[i] = row{r.a, int64(i * tileColumns * 4)}
	}
	u := *t
	u.rows, u.c, u.bias, u.flags = unsafe.Pointer(&group), unsafe.Pointer(&sums), nil, 0
	u.groups, u.size, u.small = 1, len(rows), 0
	tileNEON(&u)
	for i, r := range rows {
		for j := 0; j < tileColumns; j += 4 {
			t.finish(r.c, j, (*[4]float32)(sums[i*tileColumns+j:]))
		}
	}
}

func neonTranspose(dst, src []float32, stride, n int) {
	vectors := n &^ 3
	if vectors > 0 {
		transposeNEON(first(dst), first(src), stride, vectors)
	}
	if vectors < n {
		portableTranspose(dst[vectors*block:], src[vectors:], stride, n-vectors)
	}
}

func neonSGD(w, grad []float32, p *sgdNumbers) {
	n := whole(w)
	sgdNEON(first(w), first(grad), &p.scale, n)
	portableSGD(w[n:], grad[n:], p)
}

func neonSGDMomentum(w, grad, momentum []float32, p *sgdNumbers) {
	n := whole(w)
	sgdMomentumNEON(first(w), first(grad), first(momentum), &p.scale, n, flag(p.nesterov))
	portableSGDMomentum(w[n:], grad[n:], momentum[n:], p)
}

func neonAdam(w, grad, m, v []float32, p *adamNumbers) {
	n := whole(w)
	adamNEON(first(w), first(grad), first(m), first(v), &p.scale, n)
	portableAdam(w[n:], grad[n:], m[n:], v[n:], p)
}

func neonMoments(out *planeMoments, x []float32) {
	momentsNEON(&out.mean[0], first(x), len(x)/block)
}

func neonNormForward(y, x, residual []float32, p *normNumbers, relu bool) {
	normForwardNEON(first(y), first(x), first(residual), &p.mean[0], len(x)/block, flag(relu))
}

func neonNormBackwardSums(out *planeSums, dy, x, y []float32, p *normNumbers) {
	normBackwardSumsNEON(&out.gradient[0], first(dy), first(x), first(y), &p.mean[0], len(x)/block)
}

func neonNormBackwardOutputs(dx, dresidual, dy, x, y []float32, p *normNumbers, accumulate bool) {
	normBackwardOutputsNEON(first(dx), first(dresidual), first(dy), first(x), first(y), &p.mean[0], len(x)/block, flag(accumulate))
}
