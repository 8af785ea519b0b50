package nn

import "github.com/gradfusion/gradfusion/device"

type embeddingOp struct {
	ids, w, y *Var
	d         device.Embedding
}

// Embedding looks up vectors of w, which is count x width: ids holds I32 values
// (put on the tape by Input) of shape tokens, or sequences x tokens; the result
// has a vector for each. The gradient of w adds up in the order of tokens. An
// index that names no vector fails with the layer's name.
func (t *Tape) Embedding(ids *Var, w *Param) *Var {
	layer := layerOf(w)
	checkEmbedding(ids, w)
	op := Record[embeddingOp](t)
	op.ids, op.w = ids, w.read(t, false)
	op.d = device.Embedding{Rows: ids.Shape.Len(), Count: w.Shape[0], Width: w.Shape[1]}
	s := ids.Shape
	s.Rank++
	op.y = t.normal(s.withColumns(op.d.Width), op.w)
	defer nameIndex(layer, ids.Shape)
	t.kernels.EmbeddingForward(op.d, op.y.Value, op.w.Value, ids.Value)
	return op.y
}

func checkEmbedding(ids *Var, w *Param) {
	layer := layerOf(w)
	if len(w.Shape) != 2 {
		fail(layer, "embedding", "weight of shape %s, want count x width", w.shape())
	}
	if ids.Value.Type != device.I32 || ids.Shape.Rank > 2 || ids.Shape.Rank == 0 {
		fail(layer, "embedding", "input of shape %s and type %s, want tokens or sequences x tokens of i32", ids.Shape, ids.Value.Type)
	}
}

// nameIndex makes the panic about an index one about the layer; deferred.
func nameIndex(layer string, s Shape) {
	r := recover()
	if r == nil {
		return
	}
	e, ok := r.(*device.IndexError)
	if !ok {
		panic(r)
	}
	if s.Rank == 2 {
		n := s.Dims[1]
		fail(layer, "embedding", "token %d of sequence %d is %d, outside of 0..%d", e.Row%n, e.Row/n, e.Index, e.Count-1)
	}
	fail(layer, "embedding", "token %d is %d, outside of 0..%d", e.Row, e.Index, e.Count-1)
}

func (op *embeddingOp) BackwardInput(*Tape) {}

func (op *embeddingOp) BackwardWeight(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.w.NeedsGrad() {
		return
	}
	d := op.d
	dw, accumulate := t.tableGrad(op.w, op.ids.Value.I32()[:d.Rows])
	d.Accumulate = accumulate
	t.kernels.EmbeddingBackward(d, dw, dy, op.ids.Value)
	t.Deliver(op.w)
}

type positionsOp struct {
	x, w, y *Var
	n       int // elements of one sequence
}

// AddPositions adds row i of w, which is length x width, to token i of each
// sequence of x, which is sequences x tokens x width with at most length tokens.
func (t *Tape) AddPositions(x *Var, w *Param) *Var {
	layer := layerOf(w)
	if len(w.Shape) != 2 {
		fail(layer, "positions", "weight of shape %s, want length x width", w.shape())
	}
	if x.Shape.Rank != 3 || x.Shape.Layout != device.Plain || x.Shape.Dims[2] != w.Shape[1] {
		fail(layer, "positions", "input of shape %s, want sequences x tokens x %d", x.Shape, w.Shape[1])
	}
	if x.Shape.Dims[1] > w.Shape[0] {
		fail(layer, "positions", "input of shape %s has %d tokens, the layer has %d positions", x.Shape, x.Shape.Dims[1], w.Shape[0])
	}
	op := Record[positionsOp](t)
	op.x, op.w, op.n = x, w.read(t, false), x.Shape.Dims[1]*x.Shape.Dims[2]
	op.y = t.normal(x.Shape, x, op.w)
	table := op.w.Value.Slice(0, op.n)
	for i := range x.Shape.Rows() {
		lo, hi := i*op.n, (i+1)*op.n
		t.kernels.Add(op.y.Value.Slice(lo, hi), x.Value.Slice(lo, hi), table)
	}
	return op.y
}

func (op *positionsOp) BackwardInput(t *Tape) {
	if dy, ok := t.OutGrad(op.y); ok {
		t.pass(op.x, dy)
	}
}

func (op *positionsOp) BackwardWeight(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.w.NeedsGrad() {
		return
	}
	dw, accumulate := t.GradOf(op.w)
	t.kernels.SumRows(dw.Slice(0, op.n), dy, op.x.Shape.Rows(), op.n, accumulate)
	if !accumulate {
		t.kernels.Fill(dw.Slice(op.n, dw.Len), 0)
	}
	t.Deliver(op.w)
}
