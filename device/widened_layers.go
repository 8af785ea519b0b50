package device

// ConvForward is the kernel for any types.
func (w *Widened) ConvForward(d Conv, y, x, weights, bias Buf) {
	s := w.begin()
	w.Kernels.ConvForward(d, s.to(y, false), s.in(x), s.in(weights), bias)
	s.end()
}

// ConvBackwardInput is the kernel for any types.
func (w *Widened) ConvBackwardInput(d Conv, dx, dy, weights Buf) {
	s := w.begin()
	w.Kernels.ConvBackwardInput(d, s.to(dx, d.Accumulate), s.in(dy), s.in(weights))
	s.end()
}

// ConvBackwardWeight is the kernel for any types of x and dy.
func (w *Widened) ConvBackwardWeight(d Conv, dw, x, dy Buf) {
	s := w.begin()
	w.Kernels.ConvBackwardWeight(d, dw, s.in(x), s.in(dy))
	s.end()
}

// SumChannels is the kernel for any type of x.
func (w *Widened) SumChannels(out, x Buf, n, c, h, wide int, accumulate bool) {
	s := w.begin()
	w.Kernels.SumChannels(out, s.in(x), n, c, h, wide, accumulate)
	s.end()
}

// Moments is the kernel for any type of x.
func (w *Widened) Moments(d BatchNorm, mean, m2, x Buf) {
	s := w.begin()
	w.Kernels.Moments(d, mean, m2, s.in(x))
	s.end()
}

// BatchNormForward is the kernel for any types of y, x and residual.
func (w *Widened) BatchNormForward(d BatchNorm, y, x, mean, invstd, scale, shift, residual Buf) {
	s := w.begin()
	w.Kernels.BatchNormForward(d, s.to(y, false), s.in(x), mean, invstd, scale, shift, s.in(residual))
	s.end()
}

// BatchNormBackward is the kernel for any types of dx, dresidual, dy, x and y.
func (w *Widened) BatchNormBackward(d BatchNorm, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale Buf, frozen bool) {
	s := w.begin()
	w.Kernels.BatchNormBackward(d, s.to(dx, d.Accumulate), s.to(dresidual, false), dscale, dshift, s.in(dy), s.in(x), s.in(y), mean, invstd, scale, frozen)
	s.end()
}

// PoolForward is the kernel for any types of y and x.
func (w *Widened) PoolForward(d Pool, y, arg, x Buf) {
	s := w.begin()
	w.Kernels.PoolForward(d, s.to(y, false), arg, s.in(x))
	s.end()
}

// PoolBackward is the kernel for any types of dx and dy.
func (w *Widened) PoolBackward(d Pool, dx, dy, arg Buf) {
	s := w.begin()
	w.Kernels.PoolBackward(d, s.to(dx, d.Accumulate), s.in(dy), arg)
	s.end()
}

// GlobalAvgForward is the kernel for any types.
func (w *Widened) GlobalAvgForward(y, x Buf, n, c, h, wide int) {
	s := w.begin()
	w.Kernels.GlobalAvgForward(s.to(y, false), s.in(x), n, c, h, wide)
	s.end()
}

// GlobalAvgBackward is the kernel for any types.
func (w *Widened) GlobalAvgBackward(dx, dy Buf, n, c, h, wide int, accumulate bool) {
	s := w.begin()
	w.Kernels.GlobalAvgBackward(s.to(dx, accumulate), s.in(dy), n, c, h, wide, accumulate)
	s.end()
}

// Reorder is the kernel for any types.
func (w *Widened) Reorder(dst Buf, dstLayout Layout, src Buf, srcLayout Layout, n, c, h, wide int) {
	s := w.begin()
	w.Kernels.Reorder(s.to(dst, false), dstLayout, s.in(src), srcLayout, n, c, h, wide)
	s.end()
}

// CopyChannels is the kernel for any types.
func (w *Widened) CopyChannels(layout Layout, dst Buf, dstC, at int, src Buf, srcC, n, h, wide int) {
	s := w.begin()
	w.Kernels.CopyChannels(layout, s.to(dst, true), dstC, at, s.in(src), srcC, n, h, wide)
	s.end()
}

// ExtractChannels is the kernel for any types.
func (w *Widened) ExtractChannels(layout Layout, dst Buf, dstC int, src Buf, srcC, at, n, h, wide int, accumulate bool) {
	s := w.begin()
	w.Kernels.ExtractChannels(layout, s.to(dst, accumulate), dstC, s.in(src), srcC, at, n, h, wide, accumulate)
	s.end()
}

// LayerNormForward is the kernel for any types of y and x.
func (w *Widened) LayerNormForward(d LayerNorm, y, mean, invstd, x, scale, shift Buf) {
	s := w.begin()
	w.Kernels.LayerNormForward(d, s.to(y, false), mean, invstd, s.in(x), scale, shift)
	s.end()
}

// LayerNormBackward is the kernel for any types of dx, dy and x.
func (w *Widened) LayerNormBackward(d LayerNorm, dx, dscale, dshift, dy, x, mean, invstd, scale Buf) {
	s := w.begin()
	w.Kernels.LayerNormBackward(d, s.to(dx, d.Accumulate), dscale, dshift, s.in(dy), s.in(x), mean, invstd, scale)
	s.end()
}

// EmbeddingForward is the kernel for any types of y and table.
func (w *Widened) EmbeddingForward(d Embedding, y, table, ids Buf) {
	s := w.begin()
	w.Kernels.EmbeddingForward(d, s.to(y, false), s.in(table), ids)
	s.end()
}

// EmbeddingBackward is the kernel for any type of dy.
func (w *Widened) EmbeddingBackward(d Embedding, dtable, dy, ids Buf) {
	s := w.begin()
	w.Kernels.EmbeddingBackward(d, dtable, s.in(dy), ids)
	s.end()
}

// AttentionForward is the kernel for any types of y and qkv.
func (w *Widened) AttentionForward(d Attention, y, logsum, qkv Buf) {
	s := w.begin()
	w.Kernels.AttentionForward(d, s.to(y, false), logsum, s.in(qkv))
	s.end()
}

// AttentionBackward is the kernel for any types of dqkv, dy, qkv and y.
func (w *Widened) AttentionBackward(d Attention, dqkv, dy, qkv, y, logsum Buf) {
	s := w.begin()
	w.Kernels.AttentionBackward(d, s.to(dqkv, d.Accumulate), s.in(dy), s.in(qkv), s.in(y), logsum)
	s.end()
}
