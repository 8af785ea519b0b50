package nn

type addOp struct{ a, b, y *Var }

// Add returns a + b, of equal shape and layout. After a BatchNorm its residual
// argument does the same in one pass.
func (t *Tape) Add(layer string, a, b *Var) *Var {
	if a.Shape != b.Shape {
		fail(layer, "add", "%s and %s differ in shape", a.Shape, b.Shape)
	}
	op := Record[addOp](t)
	op.a, op.b, op.y = a, b, t.Output(a.Shape, a, b)
	t.kernels.Add(op.y.Value, a.Value, b.Value)
	return op.y
}

func (op *addOp) BackwardInput(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok {
		return
	}
	t.pass(op.a, dy)
	t.pass(op.b, dy)
}

func (op *addOp) BackwardWeight(*Tape) {}
