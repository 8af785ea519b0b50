package nn

import "github.com/gradfusion/gradfusion/device"

// cutEmbeddingOp looks up the tokens whose vectors this partner has.
type cutEmbeddingOp struct {
	w, y *Var
	d    device.Embedding // of the own tokens
	// By own token: which vector of the part it is, and where it stands.
	vectors, places device.Buf
}

// CutEmbedding is Embedding for a table of which each partner has a run of
// vectors: each looks up its own, the others being zeros, and the sum over the
// partners, which is exact, is what all of them hold.
func (t *Tape) CutEmbedding(ids *Var, w *Param, partners Partners) *Var {
	layer := layerOf(w)
	requirePart(w, 0)
	checkEmbedding(ids, w)
	op := Record[cutEmbeddingOp](t)
	op.w = w.read(t, false)
	op.d = device.Embedding{Count: w.Shape[0], Width: w.Shape[1]}
	s := ids.Shape
	s.Rank++
	op.y = t.normal(s.withColumns(op.d.Width), op.w)
	op.vectors, op.places = t.Scratch(device.I32, ids.Shape.Len()), t.Scratch(device.I32, ids.Shape.Len())
	op.choose(layer, ids, w.Part)
	t.kernels.Fill(op.y.Value, 0)
	for i, place := range op.places.I32()[:op.d.Rows] {
		t.copy(op.row(op.y.Value, place), op.row(op.w.Value, op.vectors.I32()[i]))
	}
	settle(partners.Start(device.Sum, op.y.Value, layer), layer, "sum of the partners' vectors")
	return op.y
}

// choose finds the own tokens.
func (op *cutEmbeddingOp) choose(layer string, ids *Var, part *Part) {
	defer nameIndex(layer, ids.Shape)
	run, count := part.Runs[0], part.Columns()
	for i, id := range ids.Value.I32()[:ids.Shape.Len()] {
		switch {
		case id < 0 || int(id) >= count:
			panic(&device.IndexError{Row: i, Index: id, Count: count})
		case run.Lo <= int(id) && int(id) < run.Hi:
			op.vectors.I32()[op.d.Rows], op.places.I32()[op.d.Rows] = id-int32(run.Lo), int32(i)
			op.d.Rows++
		}
	}
}

func (op *cutEmbeddingOp) row(of device.Buf, i int32) device.Buf {
	return of.Slice(int(i)*op.d.Width, int(i+1)*op.d.Width)
}

func (op *cutEmbeddingOp) BackwardInput(*Tape) {}

func (op *cutEmbeddingOp) BackwardWeight(t *Tape) {
	dy, ok := t.OutGrad(op.y)
	if !ok || !op.w.NeedsGrad() {
		return
	}
	own := t.arena.Get(dy.Type, op.d.Rows*op.d.Width)
	// dy is looked up as if it were a table.
	t.kernels.EmbeddingForward(device.Embedding{Rows: op.d.Rows, Count: op.places.Len, Width: op.d.Width}, own, dy, op.places)
	d, vectors := op.d, op.vectors.Slice(0, op.d.Rows)
	dw, accumulate := t.tableGrad(op.w, vectors.I32())
	d.Accumulate = accumulate
	t.kernels.EmbeddingBackward(d, dw, own, vectors)
	t.Deliver(op.w)
	t.arena.Put(own)
}
