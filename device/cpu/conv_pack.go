package cpu

import "github.com/gradfusion/gradfusion/device"

// weightsTask brings weights [K][C][R][S] into panels of 16 outputs of a
// convolution: part p is panel p.
type weightsTask struct {
	set      *kernelSet
	d        device.Conv
	dst      []float32
	src      tensor
	panelLen int
	backward bool
	taps     []tap // of the gradient of the input
}

// tap tells where the weights of one tap lie in a panel of the gradient of the
// input: at + block of K * stride.
type tap struct{ at, stride int }

// packForward returns panels [K/16][C/16][tap][16 of C][16 of K], or, for a
// plain x, [K/16][C][tap][16 of K].
func (k *kernels) packForward(w *workspace, d device.Conv, weights device.Buf) []float32 {
	depth := d.C
	if d.XLayout == device.Blocked16 {
		depth = device.Blocks(d.C) * block
	}
	t := &w.weights
	*t = weightsTask{set: k.set, d: d, src: k.set.tensor(weights), panelLen: depth * d.R * d.S * block}
	t.dst = w.room.floats(device.Blocks(d.K) * t.panelLen)
	return k.runPack(w, device.Blocks(d.K))
}

// packBackward returns panels [C/16][phase][K/16][tap of the phase][16 of K][16
// of C].
func (k *kernels) packBackward(w *workspace, d device.Conv, weights device.Buf, taps []tap) []float32 {
	t := &w.weights
	*t = weightsTask{set: k.set, d: d, src: k.set.tensor(weights), panelLen: device.Blocks(d.K) * d.R * d.S * block * block, backward: true, taps: taps}
	t.dst = w.room.floats(device.Blocks(d.C) * t.panelLen)
	return k.runPack(w, device.Blocks(d.C))
}

func (k *kernels) runPack(w *workspace, parts int) []float32 {
	k.pool.run(w, &w.weights, parts)
	dst := w.weights.dst
	w.weights = weightsTask{}
	return dst
}

func (t *weightsTask) do(s *scratch, panel int) {
	dst := t.dst[panel*t.panelLen:][:t.panelLen]
	if t.backward {
		t.backwardPanel(s, dst, panel)
		return
	}
	taps := t.d.R * t.d.S
	depth := t.d.C * taps
	width := min(block, t.d.K-panel*block)
	src, _ := t.src.rows(&s.wide, panel*block*depth, depth, width, depth)
	if t.d.XLayout == device.Plain || taps == 1 {
		packTransposed(t.set, dst, src, depth, depth, width)
		clear(dst[depth*block:])
		return
	}
	lines := s.plane.floats(block * taps * block) // [16 of C][tap][16 of K]
	for c := 0; c < t.d.C; c += block {
		n := min(block, t.d.C-c)
		packTransposed(t.set, lines, src[c*taps:], depth, n*taps, width)
		clear(lines[n*taps*block:])
		for i := range taps {
			for j := range block {
				*(*[block]float32)(dst[(i*block+j)*block:]) = [block]float32(lines[(j*taps+i)*block:])
			}
		}
		dst = dst[taps*block*block:]
	}
}

func (t *weightsTask) backwardPanel(s *scratch, dst []float32, panel int) {
	taps := t.d.R * t.d.S
	width := min(block, t.d.C-panel*block)
	if taps == 1 && width == block {
		clear(dst[t.d.K*block:])
		src, stride := t.src.rows(&s.wide, panel*block, t.d.C, t.d.K, block)
		t.set.lines(dst, src, stride, 0, t.d.K, 1)
		return
	}
	turned := s.plane.floats(2 * block * taps * block)
	lines := turned[block*taps*block:] // [tap][16 of K][16 of C]
	for k := 0; k < t.d.K; k += block {
		n := min(block, t.d.K-k)
		src, stride := t.src.rows(&s.wide, (k*t.d.C+panel*block)*taps, t.d.C*taps, n, width*taps)
		packTurned(t.set, lines, turned, src, stride, taps, n, width)
		for i, tap := range t.taps {
			copy(dst[tap.at+k/block*tap.stride:], lines[i*block*block:][:block*block])
		}
	}
}

// packTurned brings n output channels of weights [K][C][taps], which are stride
// apart, and width input channels, into lines [tap][16 of K][16 of C], zero beyond. turned is memory
// for as many.
func packTurned(set *kernelSet, lines, turned, weights []float32, stride, taps, n, width int) {
	packTransposed(set, turned, weights, stride, width*taps, n) // [C][tap][16 of K]
	clear(turned[width*taps*block : block*taps*block])
	for i := range taps {
		set.transpose(lines[i*block*block:], turned[i*block:], taps*block, block)
	}
}
