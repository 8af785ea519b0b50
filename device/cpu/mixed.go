package cpu

import "github.com/gradfusion/gradfusion/device"

// mixed is the kernels of a device for tensors of any floating-point type. What
// kernels does not do itself, on numbers that are converted on their way through
// the cache, device.Widened does on whole tensors.
type mixed struct {
	*device.Widened
	k *kernels
}

func (m *mixed) Fill(dst device.Buf, v float32) { m.k.Fill(dst, v) }

func (m *mixed) Add(dst, a, b device.Buf) { m.k.Add(dst, a, b) }

func (m *mixed) Scale(dst, a device.Buf, s float32) { m.k.Scale(dst, a, s) }

func (m *mixed) Activate(f device.Activation, y, x device.Buf) { m.k.Activate(f, y, x) }

func (m *mixed) ActivateBackward(f device.Activation, dx, dy, saved device.Buf, accumulate bool) {
	m.k.ActivateBackward(f, dx, dy, saved, accumulate)
}

func (m *mixed) Dropout(y, x device.Buf, p float32, seed uint64) { m.k.Dropout(y, x, p, seed) }

func (m *mixed) SumChannels(out, x device.Buf, n, c, h, w int, accumulate bool) {
	m.k.SumChannels(out, x, n, c, h, w, accumulate)
}

// Of rows of vectors, kernels make images of float32.

func (m *mixed) Moments(d device.BatchNorm, mean, m2, x device.Buf) {
	if d.Layout == device.Plain {
		m.Widened.Moments(d, mean, m2, x)
		return
	}
	m.k.Moments(d, mean, m2, x)
}

func (m *mixed) BatchNormForward(d device.BatchNorm, y, x, mean, invstd, scale, shift, residual device.Buf) {
	if d.Layout == device.Plain {
		m.Widened.BatchNormForward(d, y, x, mean, invstd, scale, shift, residual)
		return
	}
	m.k.BatchNormForward(d, y, x, mean, invstd, scale, shift, residual)
}

func (m *mixed) BatchNormBackward(d device.BatchNorm, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale device.Buf, frozen bool) {
	if d.Layout == device.Plain {
		m.Widened.BatchNormBackward(d, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale, frozen)
		return
	}
	m.k.BatchNormBackward(d, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale, frozen)
}

// Convolutions in groups copy the channels of a group, and one into a plain image
// sets that out from scratch: both in float32.

func (m *mixed) ConvForward(d device.Conv, y, x, w, bias device.Buf) {
	if d.Groups > 1 {
		m.Widened.ConvForward(d, y, x, w, bias)
		return
	}
	m.k.ConvForward(d, y, x, w, bias)
}

func (m *mixed) ConvBackwardInput(d device.Conv, dx, dy, w device.Buf) {
	if d.Groups > 1 || d.XLayout == device.Plain && device.IsHalf(dx) {
		m.Widened.ConvBackwardInput(d, dx, dy, w)
		return
	}
	m.k.ConvBackwardInput(d, dx, dy, w)
}

func (m *mixed) ConvBackwardWeight(d device.Conv, dw, x, dy device.Buf) {
	if d.Groups > 1 {
		m.Widened.ConvBackwardWeight(d, dw, x, dy)
		return
	}
	m.k.ConvBackwardWeight(d, dw, x, dy)
}

func (m *mixed) MatMul(d device.MatMul, c, a, b, bias device.Buf) { m.k.MatMul(d, c, a, b, bias) }

func (m *mixed) SumRows(out, a device.Buf, rows, cols int, accumulate bool) {
	m.k.SumRows(out, a, rows, cols, accumulate)
}

func (m *mixed) LayerNormForward(d device.LayerNorm, y, mean, invstd, x, scale, shift device.Buf) {
	m.k.LayerNormForward(d, y, mean, invstd, x, scale, shift)
}

func (m *mixed) LayerNormBackward(d device.LayerNorm, dx, dscale, dshift, dy, x, mean, invstd, scale device.Buf) {
	m.k.LayerNormBackward(d, dx, dscale, dshift, dy, x, mean, invstd, scale)
}

func (m *mixed) EmbeddingForward(d device.Embedding, y, table, ids device.Buf) {
	m.k.EmbeddingForward(d, y, table, ids)
}

func (m *mixed) EmbeddingBackward(d device.Embedding, dtable, dy, ids device.Buf) {
	m.k.EmbeddingBackward(d, dtable, dy, ids)
}

func (m *mixed) AttentionForward(d device.Attention, y, logsum, qkv device.Buf) {
	m.k.AttentionForward(d, y, logsum, qkv)
}

func (m *mixed) AttentionBackward(d device.Attention, dqkv, dy, qkv, y, logsum device.Buf) {
	m.k.AttentionBackward(d, dqkv, dy, qkv, y, logsum)
}

func (m *mixed) CrossEntropyForward(d device.CrossEntropy, loss, correct, probs, logits, labels device.Buf) {
	m.k.CrossEntropyForward(d, loss, correct, probs, logits, labels)
}

func (m *mixed) CrossEntropyBackward(d device.CrossEntropy, dlogits, probs, labels device.Buf, seed float32) {
	m.k.CrossEntropyBackward(d, dlogits, probs, labels, seed)
}

func (m *mixed) PoolForward(d device.Pool, y, arg, x device.Buf) { m.k.PoolForward(d, y, arg, x) }

func (m *mixed) PoolBackward(d device.Pool, dx, dy, arg device.Buf) { m.k.PoolBackward(d, dx, dy, arg) }

func (m *mixed) GlobalAvgForward(y, x device.Buf, n, c, h, w int) {
	m.k.GlobalAvgForward(y, x, n, c, h, w)
}

func (m *mixed) GlobalAvgBackward(dx, dy device.Buf, n, c, h, w int, accumulate bool) {
	m.k.GlobalAvgBackward(dx, dy, n, c, h, w, accumulate)
}
