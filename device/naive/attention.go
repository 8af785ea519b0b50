package naive

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// head reads one head of one sequence.
type head struct {
	d    device.Attention
	b, h int
}

func (t head) qkv(token, part, j int) int {
	return ((t.b*t.d.Length+token)*3+part)*t.d.Heads*t.d.Width + t.h*t.d.Width + j
}

func (t head) y(token, j int) int {
	return ((t.b*t.d.Length+token)*t.d.Heads+t.h)*t.d.Width + j
}

func (t head) log(token int) int { return (t.b*t.d.Heads+t.h)*t.d.Length + token }

// seen returns how many tokens a token sees.
func (t head) seen(token int) int {
	if t.d.Causal {
		return token + 1
	}
	return t.d.Length
}

// score returns the scaled product of query i and key k.
func (t head) score(qkv []float32, i, k int) float64 {
	var sum float64
	for j := range t.d.Width {
		sum += float64(float64(qkv[t.qkv(i, 0, j)]) * float64(qkv[t.qkv(k, 1, j)]))
	}
	return sum * float64(t.d.Factor())
}

// probabilities returns row i of the softmax and the logarithm of its sum.
func (t head) probabilities(qkv []float32, i int) (p []float64, logSum float64) {
	largest := math.Inf(-1)
	for k := range t.seen(i) {
		p = append(p, t.score(qkv, i, k))
		largest = max(largest, p[k])
	}
	var sum float64
	for _, s := range p {
		sum += math.Exp(s - largest)
	}
	logSum = largest + math.Log(sum)
	for k, s := range p {
		p[k] = math.Exp(s - logSum)
	}
	return p, logSum
}

func (kernels) AttentionForward(d device.Attention, y, logsum, qkv device.Buf) {
	d.RequireForward(y, logsum, qkv)
	for n := range d.Batch * d.Heads {
		t := head{d, n / d.Heads, n % d.Heads}
		for i := range d.Length {
			p, logSum := t.probabilities(qkv.F32(), i)
			logsum.F32()[t.log(i)] = float32(logSum)
			for j := range d.Width {
				var sum float64
				for k, share := range p {
					sum += float64(share * float64(qkv.F32()[t.qkv(k, 2, j)]))
				}
				y.F32()[t.y(i, j)] = float32(sum)
			}
		}
	}
}

// AttentionBackward recomputes the probabilities and uses neither y nor logsum.
func (kernels) AttentionBackward(d device.Attention, dqkv, dy, qkv, y, logsum device.Buf) {
	d.RequireBackward(dqkv, dy, qkv, y, logsum)
	in, g := qkv.F32(), dy.F32()
	sums := make([]float64, 3*d.YLen())
	for n := range d.Batch * d.Heads {
		t := head{d, n / d.Heads, n % d.Heads}
		for i := range d.Length {
			p, _ := t.probabilities(in, i)
			dp, mean := make([]float64, len(p)), 0.0
			for k, share := range p {
				for j := range d.Width {
					dp[k] += float64(float64(g[t.y(i, j)]) * float64(in[t.qkv(k, 2, j)]))
					sums[t.qkv(k, 2, j)] += float64(share * float64(g[t.y(i, j)]))
				}
				mean += float64(share * dp[k])
			}
			for k, share := range p {
				ds := share * (dp[k] - mean) * float64(d.Factor())
				for j := range d.Width {
					sums[t.qkv(i, 0, j)] += float64(ds * float64(in[t.qkv(k, 1, j)]))
					sums[t.qkv(k, 1, j)] += float64(ds * float64(in[t.qkv(i, 0, j)]))
				}
			}
		}
	}
	for i, sum := range sums {
		put(dqkv.F32(), i, float32(sum), d.Accumulate)
	}
}
