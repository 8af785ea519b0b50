package nn

import "github.com/gradfusion/gradfusion/device"

type attentionOp struct {
	x, y   *Var
	in     device.Buf // x as it is read
	logsum device.Buf
	d      device.Attention
}

// Attention returns scaled dot-product attention among the tokens of each
// sequence: qkv is sequences x tokens x 3 width, a token being its queries, keys
// and values, each of which is cut into heads; the result is sequences x tokens
// x width. With causal set a token sees none after it. The memory it keeps grows
// with the tokens, not with their square; there is no dropout inside. Vaswani et
// al. 2017, Dao et al. 2022.
func (t *Tape) Attention(layer string, qkv *Var, heads int, causal bool) *Var {
	s := qkv.Shape
	if s.Rank != 3 || s.Layout != device.Plain {
		fail(layer, "attention", "input of shape %s, want sequences x tokens x 3 width", s)
	}
	if heads < 1 || s.Dims[2]%(3*heads) != 0 || s.Dims[2] == 0 {
		fail(layer, "attention", "input of shape %s is not cut into queries, keys and values of %d heads", s, heads)
	}
	op := Record[attentionOp](t)
	op.x = qkv
	op.d = device.Attention{Batch: s.Dims[0], Length: s.Dims[1], Heads: heads, Width: s.Dims[2] / (3 * heads), Causal: causal}
	op.in = t.operand(qkv)
	op.y = t.product(s.withColumns(s.Dims[2]/3), qkv)
	op.logsum = t.Scratch(device.F32, op.d.LogLen())
	t.kernels.AttentionForward(op.d, op.y.Value, op.logsum, op.in)
	return op.y
}

func (op *attentionOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.x.NeedsGrad() {
		return
	}
	d := op.d
	dx, accumulate := t.GradOf(op.x)
	d.Accumulate = accumulate
	t.kernels.AttentionBackward(d, dx, dy, op.in, op.y.Value, op.logsum)
}

func (op *attentionOp) BackwardWeight(*Tape) {}
