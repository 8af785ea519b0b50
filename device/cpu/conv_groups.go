package cpu

import "github.com/gradfusion/gradfusion/device"

// A convolution in groups is a convolution for each group on a copy of its
// channels: a group seldom fills whole blocks of 16. Only one channel a group
// has kernels of its own (conv_depthwise.go).

// depthwise reports whether every channel of a blocked x makes one of y.
func depthwise(d device.Conv) bool {
	return d.Groups == d.C && d.K == d.C && d.XLayout == device.Blocked16
}

// groupOf returns the convolution of one group, its weights, and its first
// channel of x and of y.
func groupOf(d device.Conv, w device.Buf, g int) (part device.Conv, weights device.Buf, c, k int) {
	part = d
	part.C, part.K, part.Groups = d.GroupC(), d.GroupK(), 0
	n := part.WeightLen()
	return part, w.Slice(g*n, (g+1)*n), g * part.C, g * part.K
}

// grouped holds the copies of one group's channels.
type grouped struct{ x, y memory }

func (m *grouped) bufs(part device.Conv) (x, y device.Buf) {
	return device.FromF32(m.x.floats(part.XLen())), device.FromF32(m.y.floats(part.YLen()))
}

func (k *kernels) groupedForward(d device.Conv, y, x, weights, bias device.Buf) {
	if depthwise(d) {
		k.depthwiseForward(d, y, x, weights, bias)
		return
	}
	if d.K%block != 0 {
		k.Fill(y, 0) // the channels of padding, which no group has
	}
	w := k.take()
	for g := range d.Groups {
		part, partWeights, c, first := groupOf(d, weights, g)
		px, py := w.grouped.bufs(part)
		var partBias device.Buf
		if !bias.IsZero() {
			partBias = bias.Slice(first, first+part.K)
		}
		k.ExtractChannels(d.XLayout, px, part.C, x, d.C, c, d.N, d.H, d.W, false)
		k.ConvForward(part, py, px, partWeights, partBias)
		k.CopyChannels(device.Blocked16, y, d.K, first, py, part.K, d.N, d.OutH(), d.OutW())
	}
	k.give(w)
}

func (k *kernels) groupedBackwardInput(d device.Conv, dx, dy, weights device.Buf) {
	if depthwise(d) {
		k.depthwiseBackwardInput(d, dx, dy, weights)
		return
	}
	if d.XLayout == device.Blocked16 && d.C%block != 0 && !d.Accumulate {
		k.Fill(dx, 0)
	}
	w := k.take()
	for g := range d.Groups {
		part, partWeights, c, first := groupOf(d, weights, g)
		px, py := w.grouped.bufs(part)
		if d.Accumulate {
			k.ExtractChannels(d.XLayout, px, part.C, dx, d.C, c, d.N, d.H, d.W, false)
		}
		k.ExtractChannels(device.Blocked16, py, part.K, dy, d.K, first, d.N, d.OutH(), d.OutW(), false)
		k.ConvBackwardInput(part, px, py, partWeights)
		k.CopyChannels(d.XLayout, dx, d.C, c, px, part.C, d.N, d.H, d.W)
	}
	k.give(w)
}

func (k *kernels) groupedBackwardWeight(d device.Conv, dw, x, dy device.Buf) {
	if depthwise(d) {
		k.depthwiseBackwardWeight(d, dw, x, dy)
		return
	}
	w := k.take()
	for g := range d.Groups {
		part, partWeights, c, first := groupOf(d, dw, g)
		px, py := w.grouped.bufs(part)
		k.ExtractChannels(d.XLayout, px, part.C, x, d.C, c, d.N, d.H, d.W, false)
		k.ExtractChannels(device.Blocked16, py, part.K, dy, d.K, first, d.N, d.OutH(), d.OutW(), false)
		k.ConvBackwardWeight(part, partWeights, px, py)
	}
	k.give(w)
}
