package nn

type concatOp struct {
	parts []*Var
	y     *Var
}

// Concat joins its inputs along dimension 1: the channels of images, the
// columns of matrices. Their other dimensions and layouts are equal.
func (t *Tape) Concat(layer string, parts ...*Var) *Var {
	if len(parts) == 0 {
		fail(layer, "concat", "no inputs")
	}
	s := parts[0].Shape
	if s.Rank != 2 && s.Rank != 4 {
		fail(layer, "concat", "input of shape %s, want images or matrices", s)
	}
	channels := 0
	for _, x := range parts {
		channels += x.Shape.Dims[1]
		s.Dims[1] = x.Shape.Dims[1]
		if x.Shape != s {
			fail(layer, "concat", "%s does not join %s along dimension 1", x.Shape, parts[0].Shape)
		}
	}
	s.Dims[1] = channels
	op := Record[concatOp](t)
	op.parts = t.List(parts...)
	op.y = t.Output(s, parts...)
	n, h, w := s.images()
	at := 0
	for _, x := range op.parts {
		c := x.Shape.Dims[1]
		t.kernels.CopyChannels(s.Layout, op.y.Value, s.Dims[1], at, x.Value, c, n, h, w)
		at += c
	}
	return op.y
}

func (op *concatOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok {
		return
	}
	s := op.y.Shape
	n, h, w := s.images()
	at := 0
	for _, x := range op.parts {
		c := x.Shape.Dims[1]
		if x.NeedsGrad() {
			dx, accumulate := t.GradOf(x)
			t.kernels.ExtractChannels(s.Layout, dx, c, dy, s.Dims[1], at, n, h, w, accumulate)
		}
		at += c
	}
}

func (op *concatOp) BackwardWeight(*Tape) {}

type padChannelsOp struct{ x, y *Var }

// PadChannels appends channels of zeros (columns, for a matrix) until there are
// channels of them: the parameter-free shortcut of He et al. 2016.
func (t *Tape) PadChannels(layer string, x *Var, channels int) *Var {
	s := x.Shape
	if (s.Rank != 2 && s.Rank != 4) || channels < s.Dims[1] {
		fail(layer, "pad channels", "input of shape %s does not grow to %d channels", s, channels)
	}
	if channels == s.Dims[1] {
		return x
	}
	s.Dims[1] = channels
	op := Record[padChannelsOp](t)
	op.x, op.y = x, t.Output(s, x)
	n, h, w := s.images()
	t.kernels.Fill(op.y.Value, 0)
	t.kernels.CopyChannels(s.Layout, op.y.Value, channels, 0, x.Value, x.Shape.Dims[1], n, h, w)
	return op.y
}

func (op *padChannelsOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	s := op.y.Shape
	n, h, w := s.images()
	dx, accumulate := t.GradOf(op.x)
	t.kernels.ExtractChannels(s.Layout, dx, op.x.Shape.Dims[1], dy, s.Dims[1], 0, n, h, w, accumulate)
}

func (op *padChannelsOp) BackwardWeight(*Tape) {}
