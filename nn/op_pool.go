package nn

import "github.com/gradfusion/gradfusion/device"

// PoolConfig describes pooling. The zero Stride is the window's own size, as in
// PyTorch.
type PoolConfig struct {
	Window, Stride, Padding Extent
	// CountPadding makes an average divide by the whole window, padding
	// included; otherwise it divides by the pixels inside the image.
	CountPadding bool
}

type poolOp struct {
	x, y *Var
	arg  device.Buf
	d    device.Pool
}

// Pool returns the maximum or average over windows of images x in the
// Blocked16 layout.
func (t *Tape) Pool(layer string, kind device.PoolKind, x *Var, c PoolConfig) *Var {
	requireBlocked(layer, "pool", x.Shape)
	if c.Stride == (Extent{}) {
		c.Stride = c.Window
	}
	checkWindow(layer, "pool", x.Shape, c.Window, c.Stride, c.Padding)
	if c.Padding.H > c.Window.H/2 || c.Padding.W > c.Window.W/2 {
		fail(layer, "pool", "padding %d x %d is more than half of the window %d x %d", c.Padding.H, c.Padding.W, c.Window.H, c.Window.W)
	}
	d := device.Pool{
		Kind: kind, N: x.Shape.Dims[0], C: x.Shape.Dims[1], H: x.Shape.Dims[2], W: x.Shape.Dims[3],
		R: c.Window.H, S: c.Window.W, StrideH: c.Stride.H, StrideW: c.Stride.W,
		PadH: c.Padding.H, PadW: c.Padding.W, CountPad: c.CountPadding,
	}
	op := Record[poolOp](t)
	op.x, op.d = x, d
	op.y = t.Output(Image(d.N, d.C, d.OutH(), d.OutW()), x)
	if kind == device.MaxPool {
		op.arg = t.Scratch(device.I32, d.YLen())
	}
	t.kernels.PoolForward(d, op.y.Value, op.arg, x.Value)
	return op.y
}

func requireBlocked(layer, op string, s Shape) {
	if s.Rank != 4 || s.Layout != device.Blocked16 {
		fail(layer, op, "input of shape %s, want images in the %s layout", s, device.Blocked16)
	}
}

func (op *poolOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	dx, accumulate := t.GradOf(op.x)
	d := op.d
	d.Accumulate = accumulate
	t.kernels.PoolBackward(d, dx, dy, op.arg)
}

func (op *poolOp) BackwardWeight(*Tape) {}

type globalAvgOp struct{ x, y *Var }

// GlobalAvg returns the mean of each channel of each image: a matrix of images
// x channels.
func (t *Tape) GlobalAvg(layer string, x *Var) *Var {
	requireBlocked(layer, "global average", x.Shape)
	n, c, h, w := x.Shape.Dims[0], x.Shape.Dims[1], x.Shape.Dims[2], x.Shape.Dims[3]
	op := Record[globalAvgOp](t)
	op.x, op.y = x, t.Output(Plain(n, c), x)
	t.kernels.GlobalAvgForward(op.y.Value, x.Value, n, c, h, w)
	return op.y
}

func (op *globalAvgOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	dx, accumulate := t.GradOf(op.x)
	s := op.x.Shape.Dims
	t.kernels.GlobalAvgBackward(dx, dy, s[0], s[1], s[2], s[3], accumulate)
}

func (op *globalAvgOp) BackwardWeight(*Tape) {}
