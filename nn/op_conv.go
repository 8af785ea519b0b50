package nn

import "github.com/gradfusion/gradfusion/device"

// Extent is a height and a width, in pixels.
type Extent struct{ H, W int }

// Square is the Extent of n x n.
func Square(n int) Extent { return Extent{n, n} }

// or1 replaces the zero value by 1 x 1, for strides.
func (e Extent) or1() Extent {
	if e == (Extent{}) {
		return Extent{1, 1}
	}
	return e
}

type convOp struct {
	x, w, b, y *Var
	in         device.Buf // x as it is read
	d          device.Conv
}

// Conv2d returns the cross-correlation of images x with w, which is out x
// in/groups x height x width, plus b, which has out elements or is nil; c.Bias
// says nothing here. x may be Plain, as a network's input is; the result is
// Blocked16.
func (t *Tape) Conv2d(x *Var, w, b *Param, c ConvConfig) *Var {
	layer := layerOf(w)
	if len(w.Shape) != 4 || (b != nil && b.Len() != w.Shape[0]) {
		fail(layer, "conv2d", "weight of shape %s and bias of %s: want out x in/groups x height x width, and out", w.shape(), b.shape())
	}
	if x.Shape.Rank != 4 {
		fail(layer, "conv2d", "input of shape %s, want images: N x %d x height x width", x.Shape, w.Shape[1]*max(1, c.Groups))
	}
	stride, dilation := c.Stride.or1(), c.Dilation.or1()
	d := device.Conv{
		N: x.Shape.Dims[0], C: x.Shape.Dims[1], H: x.Shape.Dims[2], W: x.Shape.Dims[3],
		K: w.Shape[0], R: w.Shape[2], S: w.Shape[3],
		StrideH: stride.H, StrideW: stride.W, PadH: c.Padding.H, PadW: c.Padding.W,
		XLayout: x.Shape.Layout, Groups: c.Groups, DilateH: dilation.H, DilateW: dilation.W,
	}
	if d.Groups < 0 || d.K%max(1, d.Groups) != 0 {
		fail(layer, "conv2d", "%d groups of %d output channels: the groups must divide them", d.Groups, d.K)
	}
	if dilation.H < 1 || dilation.W < 1 {
		fail(layer, "conv2d", "dilation %d x %d: both must be at least 1", dilation.H, dilation.W)
	}
	if d.C != w.Shape[1]*max(1, d.Groups) {
		fail(layer, "conv2d", "input of shape %s has %d channels, the weight of shape %s takes %d", x.Shape, d.C, w.shape(), w.Shape[1]*max(1, d.Groups))
	}
	checkWindow(layer, "conv2d", x.Shape, Extent{d.ReachH(), d.ReachW()}, stride, c.Padding)
	op := Record[convOp](t)
	op.x, op.w, op.d = x, w.read(t, false), d
	op.in = t.operand(x)
	var bias device.Buf
	if b != nil {
		op.b = b.Use(t)
		bias = op.b.Value
	}
	op.y = t.product(Image(d.N, d.K, d.OutH(), d.OutW()), x, op.w, op.b)
	t.kernels.ConvForward(d, op.y.Value, op.in, op.w.Value, bias)
	return op.y
}

// checkWindow refuses a window that does not fit the padded image.
func checkWindow(layer, op string, x Shape, window, stride, padding Extent) {
	h, w := x.Dims[2]+2*padding.H, x.Dims[3]+2*padding.W
	switch {
	case window.H < 1 || window.W < 1 || stride.H < 1 || stride.W < 1:
		fail(layer, op, "window %d x %d with stride %d x %d: all must be at least 1", window.H, window.W, stride.H, stride.W)
	case padding.H < 0 || padding.W < 0:
		fail(layer, op, "padding %d x %d is negative", padding.H, padding.W)
	case window.H > h || window.W > w:
		fail(layer, op, "the window %d x %d is larger than the image: input of shape %s, %d x %d with padding", window.H, window.W, x, h, w)
	}
}

func (op *convOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	dx, accumulate := t.GradOf(op.x)
	d := op.d
	d.Accumulate = accumulate
	t.kernels.ConvBackwardInput(d, dx, dy, op.w.Value)
}

func (op *convOp) BackwardWeight(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok {
		return
	}
	d := op.d
	if op.b.NeedsGrad() {
		db, accumulate := t.GradOf(op.b)
		t.kernels.SumChannels(db, dy, d.N, d.K, d.OutH(), d.OutW(), accumulate)
		t.Deliver(op.b)
	}
	if op.w.NeedsGrad() {
		dw, accumulate := t.GradOf(op.w)
		d.Accumulate = accumulate
		in := op.in
		if in.Type == op.x.Value.Type { // it is x itself and no cast copy
			in = t.restored(op.x)
		}
		t.kernels.ConvBackwardWeight(d, dw, in, dy)
		t.Deliver(op.w)
	}
}
