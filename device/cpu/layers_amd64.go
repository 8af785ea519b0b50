package cpu

import "github.com/gradfusion/gradfusion/device"

func layersAVX2() layerKernels {
	return layerKernels{
		rmsProp:     rmsPropFast,
		adaGrad:     adaGradFast,
		lambMoments: lambMomentsFast,
		lambStep: func(w, m, v []float32, p *adamNumbers) {
			n := whole(w)
			lambStepAVX2(first(w), first(m), first(v), &p.scale, n)
			portableLAMBStep(w[n:], m[n:], v[n:], p)
		},
	}
}

func rmsPropFast(w, grad, square, momentum []float32, p *rmsNumbers) {
	n := whole(w)
	if momentum == nil {
		rmsPropAVX2(first(w), first(grad), first(square), &p.scale, n)
		portableRMSProp(w[n:], grad[n:], square[n:], nil, p)
		return
	}
	rmsPropMomentumAVX2(first(w), first(grad), first(square), first(momentum), &p.scale, n)
	portableRMSProp(w[n:], grad[n:], square[n:], momentum[n:], p)
}

func adaGradFast(w, grad, sum []float32, p *rmsNumbers) {
	n := whole(w)
	adaGradAVX2(first(w), first(grad), first(sum), &p.scale, n)
	portableAdaGrad(w[n:], grad[n:], sum[n:], p)
}

// lambMomentsFast adds the squares of a block in an order that depends on its
// length only.
func lambMomentsFast(squares []float64, w, grad, m, v []float32, p *adamNumbers) {
	for lo := 0; lo < len(w); lo += device.NormBlock {
		hi := min(lo+device.NormBlock, len(w))
		rest := lo + whole(w[lo:hi])
		sum := lambMomentsAVX2(first(w[lo:hi]), first(grad[lo:hi]), first(m[lo:hi]), first(v[lo:hi]), &p.scale, rest-lo)
		squares[lo/device.NormBlock] = addLAMBMoments(sum, w[rest:hi], grad[rest:hi], m[rest:hi], v[rest:hi], p)
	}
}
