package nn

import "github.com/gradfusion/gradfusion/device"

// Forget gives back the memory of y, the result of a BatchNorm without residual
// that no operation's backward pass reads but its own, such as one that went to a
// pool alone: that computes it again, to the same bits. y can be read no more. For
// what else made y it does nothing.
func (t *Tape) Forget(y *Var) {
	if !t.Pass.Training || !y.owned || y.producer < 0 {
		return
	}
	op, ok := t.ops[y.producer].(*batchNormOp)
	if !ok || op.y != y || op.residual != nil {
		return
	}
	t.arena.Put(y.Value)
	y.Value, y.owned = device.Buf{Type: y.Value.Type}, false
}

// overwritten reports whether what comes after v may be written over it, if nobody
// reads v but the operation that follows: whether its maker's backward pass leaves
// it alone.
func (t *Tape) overwritten(v *Var) bool {
	if v == nil || !v.owned || v.producer < 0 {
		return false
	}
	op, ok := t.ops[v.producer].(*batchNormOp)
	return ok && op.y == v && op.d.Activation == device.Identity
}
