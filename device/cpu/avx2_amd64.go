package cpu

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
