package cpu

import "github.com/gradfusion/gradfusion/device"

const block = device.Block

// normNumbers are constants of one block of channels. Those of padding channels
// are zero, which keeps the padding zero. The assembly reads them by position.
type normNumbers struct {
	mean, factor, shift [block]float32
	// What batch statistics subtract in backward: the mean of the gradient, and
	// the slope of the gradient over x.
	offset, slope [block]float32
}

// planeMoments are the first two moments of some pixels of 16 channels, about a
// first guess of the mean: the sums of (x-mean) and of (x-mean)^2.
type planeMoments struct{ mean, first, second [block]float32 }

// planeSums are sums over some pixels of the gradient g, and of g*(x-mean).
type planeSums struct{ gradient, product [block]float32 }

// planePixels is the most pixels whose moments are taken at once: they fit the
// first-level cache, so that the second pass over them is free, and the sums in
// float32 stay short.
const planePixels = 256

func portableMoments(out *planeMoments, x []float32) {
	*out = planeMoments{}
	count := float32(len(x) / block)
	for i, v := range x {
		out.mean[i%block] += v
	}
	for c := range block {
		out.mean[c] /= count
	}
	for i, v := range x {
		d := v - out.mean[i%block]
		out.first[i%block] += d
		out.second[i%block] += float32(d * d)
	}
}

func portableNormForward(y, x, residual []float32, p *normNumbers, relu bool) {
	for i, v := range x {
		c := i % block
		v = float32((v-p.mean[c])*p.factor[c]) + p.shift[c]
		if residual != nil {
			v += residual[i]
		}
		if relu && v < 0 {
			v = 0
		}
		y[i] = v
	}
}

// portableNormBackwardSums takes y nil when there is no ReLU.
func portableNormBackwardSums(out *planeSums, dy, x, y []float32, p *normNumbers) {
	*out = planeSums{}
	for i, g := range dy {
		if y != nil && y[i] <= 0 {
			g = 0
		}
		c := i % block
		out.gradient[c] += g
		out.product[c] += float32(g * (x[i] - p.mean[c]))
	}
}

// portableNormBackwardOutputs takes y nil when there is no ReLU, and dx or
// dresidual nil when they are not wanted.
func portableNormBackwardOutputs(dx, dresidual, dy, x, y []float32, p *normNumbers, accumulate bool) {
	for i, g := range dy {
		if y != nil && y[i] <= 0 {
			g = 0
		}
		if dresidual != nil {
			dresidual[i] = g
		}
		c := i % block
		v := float32(p.factor[c] * ((g - p.offset[c]) - float32((x[i]-p.mean[c])*p.slope[c])))
		if accumulate {
			v += dx[i]
		}
		dx[i] = v
	}
}
