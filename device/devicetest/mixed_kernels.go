package devicetest

import "github.com/gradfusion/gradfusion/device"

// The kernels that take operands of any type; see converting.

func (c *converting) Fill(dst device.Buf, v float32) {
	c.Kernels.Fill(c.out(dst, false), v)
	c.done()
}

func (c *converting) Add(dst, a, b device.Buf) {
	c.Kernels.Add(c.out(dst, false), c.in(a), c.in(b))
	c.done()
}

func (c *converting) Scale(dst, a device.Buf, factor float32) {
	c.Kernels.Scale(c.out(dst, false), c.in(a), factor)
	c.done()
}

func (c *converting) Activate(f device.Activation, y, x device.Buf) {
	c.Kernels.Activate(f, c.out(y, false), c.in(x))
	c.done()
}

func (c *converting) ActivateBackward(f device.Activation, dx, dy, saved device.Buf, accumulate bool) {
	c.Kernels.ActivateBackward(f, c.out(dx, accumulate), c.in(dy), c.in(saved), accumulate)
	c.done()
}

func (c *converting) Dropout(y, x device.Buf, p float32, seed uint64) {
	c.Kernels.Dropout(c.out(y, false), c.in(x), p, seed)
	c.done()
}

func (c *converting) MatMul(d device.MatMul, out, a, b, bias device.Buf) {
	_, _, ldc := d.Strides()
	// What lies between the rows of c stays as it is.
	c.Kernels.MatMul(d, c.out(out, d.Accumulate || ldc != d.N), c.in(a), c.in(b), bias)
	c.done()
}

func (c *converting) SumRows(out, a device.Buf, rows, cols int, accumulate bool) {
	c.Kernels.SumRows(out, c.in(a), rows, cols, accumulate)
	c.done()
}

func (c *converting) CrossEntropyForward(d device.CrossEntropy, loss, correct, probs, logits, labels device.Buf) {
	c.Kernels.CrossEntropyForward(d, loss, correct, probs, c.in(logits), labels)
	c.done()
}

func (c *converting) CrossEntropyBackward(d device.CrossEntropy, dlogits, probs, labels device.Buf, seed float32) {
	c.Kernels.CrossEntropyBackward(d, c.out(dlogits, false), probs, labels, seed)
	c.done()
}

func (c *converting) SquaredErrorForward(loss, x, t device.Buf) {
	c.Kernels.SquaredErrorForward(loss, c.in(x), c.in(t))
	c.done()
}

func (c *converting) SquaredErrorBackward(dx, x, t device.Buf, seed float32) {
	c.Kernels.SquaredErrorBackward(c.out(dx, false), c.in(x), c.in(t), seed)
	c.done()
}

func (c *converting) ConvForward(d device.Conv, y, x, weights, bias device.Buf) {
	c.Kernels.ConvForward(d, c.out(y, false), c.in(x), c.in(weights), bias)
	c.done()
}

func (c *converting) ConvBackwardInput(d device.Conv, dx, dy, weights device.Buf) {
	c.Kernels.ConvBackwardInput(d, c.out(dx, d.Accumulate), c.in(dy), c.in(weights))
	c.done()
}

func (c *converting) ConvBackwardWeight(d device.Conv, dw, x, dy device.Buf) {
	c.Kernels.ConvBackwardWeight(d, dw, c.in(x), c.in(dy))
	c.done()
}

func (c *converting) SumChannels(out, x device.Buf, n, channels, h, wide int, accumulate bool) {
	c.Kernels.SumChannels(out, c.in(x), n, channels, h, wide, accumulate)
	c.done()
}

func (c *converting) Moments(d device.BatchNorm, mean, m2, x device.Buf) {
	c.Kernels.Moments(d, mean, m2, c.in(x))
	c.done()
}

func (c *converting) BatchNormForward(d device.BatchNorm, y, x, mean, invstd, scale, shift, residual device.Buf) {
	c.Kernels.BatchNormForward(d, c.out(y, false), c.in(x), mean, invstd, scale, shift, c.in(residual))
	c.done()
}

func (c *converting) BatchNormBackward(d device.BatchNorm, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale device.Buf, frozen bool) {
	c.Kernels.BatchNormBackward(d, c.out(dx, d.Accumulate), c.out(dresidual, false), dscale, dshift, c.in(dy), c.in(x), c.in(y), mean, invstd, scale, frozen)
	c.done()
}

func (c *converting) PoolForward(d device.Pool, y, arg, x device.Buf) {
	c.Kernels.PoolForward(d, c.out(y, false), arg, c.in(x))
	c.done()
}

func (c *converting) PoolBackward(d device.Pool, dx, dy, arg device.Buf) {
	c.Kernels.PoolBackward(d, c.out(dx, d.Accumulate), c.in(dy), arg)
	c.done()
}

func (c *converting) GlobalAvgForward(y, x device.Buf, n, channels, h, wide int) {
	c.Kernels.GlobalAvgForward(c.out(y, false), c.in(x), n, channels, h, wide)
	c.done()
}

func (c *converting) GlobalAvgBackward(dx, dy device.Buf, n, channels, h, wide int, accumulate bool) {
	c.Kernels.GlobalAvgBackward(c.out(dx, accumulate), c.in(dy), n, channels, h, wide, accumulate)
	c.done()
}

func (c *converting) Reorder(dst device.Buf, dstLayout device.Layout, src device.Buf, srcLayout device.Layout, n, channels, h, wide int) {
	c.Kernels.Reorder(c.out(dst, false), dstLayout, c.in(src), srcLayout, n, channels, h, wide)
	c.done()
}

func (c *converting) CopyChannels(layout device.Layout, dst device.Buf, dstC, at int, src device.Buf, srcC, n, h, wide int) {
	c.Kernels.CopyChannels(layout, c.out(dst, true), dstC, at, c.in(src), srcC, n, h, wide)
	c.done()
}

func (c *converting) ExtractChannels(layout device.Layout, dst device.Buf, dstC int, src device.Buf, srcC, at, n, h, wide int, accumulate bool) {
	c.Kernels.ExtractChannels(layout, c.out(dst, accumulate), dstC, c.in(src), srcC, at, n, h, wide, accumulate)
	c.done()
}

func (c *converting) LayerNormForward(d device.LayerNorm, y, mean, invstd, x, scale, shift device.Buf) {
	c.Kernels.LayerNormForward(d, c.out(y, false), mean, invstd, c.in(x), scale, shift)
	c.done()
}

func (c *converting) LayerNormBackward(d device.LayerNorm, dx, dscale, dshift, dy, x, mean, invstd, scale device.Buf) {
	c.Kernels.LayerNormBackward(d, c.out(dx, d.Accumulate), dscale, dshift, c.in(dy), c.in(x), mean, invstd, scale)
	c.done()
}

func (c *converting) EmbeddingForward(d device.Embedding, y, table, ids device.Buf) {
	c.Kernels.EmbeddingForward(d, c.out(y, false), c.in(table), ids)
	c.done()
}

func (c *converting) EmbeddingBackward(d device.Embedding, dtable, dy, ids device.Buf) {
	c.Kernels.EmbeddingBackward(d, dtable, c.in(dy), ids)
	c.done()
}

func (c *converting) AttentionForward(d device.Attention, y, logsum, qkv device.Buf) {
	c.Kernels.AttentionForward(d, c.out(y, false), logsum, c.in(qkv))
	c.done()
}

func (c *converting) AttentionBackward(d device.Attention, dqkv, dy, qkv, y, logsum device.Buf) {
	c.Kernels.AttentionBackward(d, c.out(dqkv, d.Accumulate), c.in(dy), c.in(qkv), c.in(y), logsum)
	c.done()
}
