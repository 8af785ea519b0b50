package nn

import "github.com/gradfusion/gradfusion/device"

// Forget gives back the memory of y, the result of a BatchNorm without residual
// that went to pools and Conv2ds only, and directly. The backward pass computes it
// again where it reads it, to the same bits, which takes about one more forward pass
// of the norm, or two where the halves of the pass run apart. y can be read no more.
// For what else made y it does nothing.
func (t *Tape) Forget(y *Var) {
	if !y.owned || y.producer < 0 {
		return
	}
	op, ok := t.ops[y.producer].(*batchNormOp)
	if !ok || op.y != y || op.residual != nil {
		return
	}
	t.arena.Put(y.Value)
	y.Value, y.owned = device.Buf{Type: y.Value.Type}, false
}

// restored returns the value of y as a backward pass reads it. What Forget gave
// back lives again until its maker has run its own.
func (t *Tape) restored(y *Var) device.Buf {
	if y.Value.IsZero() && y.producer >= 0 {
		if op, ok := t.ops[y.producer].(*batchNormOp); ok && op.y == y {
			y.Value, y.owned = t.arena.Get(y.Value.Type, y.Shape.Len()), true
			op.forward(t, y.Value)
		}
	}
	return y.Value
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
