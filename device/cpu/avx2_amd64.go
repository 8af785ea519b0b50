package cpu

import "unsafe"

// The functions here give the assembly whole vectors and the rest to the
// portable loops, which do the same operations. Slices are at most a few tens of
// thousands of elements long, so that no call holds up the garbage collector.

// first returns where s starts; it may be nil for an empty s.
func first(s []float32) *float32 { return unsafe.SliceData(s) }

// whole returns how many elements of s fill whole vectors.
func whole(s []float32) int { return len(s) &^ 7 }

func binaryFast(fast func(dst, a, b *float32, n int), rest func(dst, a, b []float32), dst, a, b []float32) {
	n := whole(a)
	fast(first(dst), first(a), first(b), n)
	if n < len(a) {
		rest(dst[n:], a[n:], b[n:])
	}
}

func halvesFast(widen, add func(dst *float32, src *uint16, n int), narrow func(dst *uint16, src *float32, n int), rest halfKernels) halfKernels {
	return halfKernels{
		widen: func(dst []float32, src []uint16) {
			n := len(src) &^ 7
			widen(first(dst), unsafe.SliceData(src), n)
			rest.widen(dst[n:], src[n:])
		},
		add: func(dst []float32, src []uint16) {
			n := len(src) &^ 7
			add(first(dst), unsafe.SliceData(src), n)
			rest.add(dst[n:], src[n:])
		},
		narrow: func(dst []uint16, src []float32) {
			n := whole(src)
			narrow(unsafe.SliceData(dst), first(src), n)
			rest.narrow(dst[n:], src[n:])
		},
	}
}

func transposeFast(dst, src []float32, stride, n int) {
	vectors := n &^ 7
	if vectors > 0 {
		transposeAVX2(first(dst), first(src), stride*4, vectors)
	}
	if vectors < n {
		portableTranspose(dst[vectors*block:], src[vectors:], stride, n-vectors)
	}
}

func sgdFast(w, grad []float32, p *sgdNumbers) {
	n := whole(w)
	sgdAVX2(first(w), first(grad), &p.scale, n)
	portableSGD(w[n:], grad[n:], p)
}

func sgdMomentumFast(w, grad, momentum []float32, p *sgdNumbers) {
	n := whole(w)
	if p.nesterov {
		sgdNesterovAVX2(first(w), first(grad), first(momentum), &p.scale, n)
	} else {
		sgdMomentumAVX2(first(w), first(grad), first(momentum), &p.scale, n)
	}
	portableSGDMomentum(w[n:], grad[n:], momentum[n:], p)
}

func adamFast(w, grad, m, v []float32, p *adamNumbers) {
	n := whole(w)
	adamAVX2(first(w), first(grad), first(m), first(v), &p.scale, n)
	portableAdam(w[n:], grad[n:], m[n:], v[n:], p)
}

func momentsFast(out *planeMoments, x []float32) {
	pixels := len(x) / block
	momentsAVX2(&out.mean[0], first(x), pixels, 1/float32(pixels))
}

func normForwardFast(y, x, residual []float32, p *normNumbers, relu bool) {
	normForwardAVX2(first(y), first(x), first(residual), &p.mean[0], len(x)/block, flag(relu))
}

func normBackwardSumsFast(out *planeSums, dy, x, y []float32, p *normNumbers) {
	normBackwardSumsAVX2(&out.gradient[0], first(dy), first(x), first(y), &p.mean[0], len(x)/block)
}

func normBackwardOutputsFast(dx, dresidual, dy, x, y []float32, p *normNumbers, accumulate bool) {
	normBackwardOutputsAVX2(first(dx), first(dresidual), first(dy), first(x), first(y), &p.mean[0], len(x)/block, flag(accumulate))
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
