package nn

// Embedding is a table of vectors that integers look up; see Tape.Embedding. A
// Linear whose Weight is an Embedding's computes the logits of tied weights.
type Embedding struct {
	Weight *Param // count x width
	Cut    Cut    // of the vectors over partners, as Weight is
}

// NewEmbedding returns a layer whose parameter is name.weight. It starts as
// PyTorch's does: normal with deviation 1. A model that wants another start sets
// Weight.Init; one whose passes look up few of many vectors sets Weight.Sparse,
// unless a Linear uses the Weight too, whose gradient has all rows.
func NewEmbedding(name string, count, width int) *Embedding {
	return NewCutEmbedding(name, count, width, nil)
}

// NewCutEmbedding is NewEmbedding for a table of which each of partners has a
// run of vectors.
func NewCutEmbedding(name string, count, width int, partners Partners) *Embedding {
	checkTable(name, "embedding", "vectors", count, width)
	c := Cut{Partners: partners}
	return &Embedding{table(name, c.part(name, 0, count, width), count, width), c}
}

func checkTable(name, op, rows string, count, width int) {
	if count < 1 || width < 1 {
		fail(name, op, "%d %s of width %d: both must be at least 1", count, rows, width)
	}
}

func table(name string, part *Part, count, width int) *Param {
	return cutParam(part, Param{Name: name + ".weight", Decay: true, Init: Init{Kind: Normal, Scale: 1}}, count, width)
}

// Forward applies the layer to I32 indices.
func (l *Embedding) Forward(t *Tape, ids *Var) *Var {
	if l.Cut.IsWhole() {
		return t.Embedding(ids, l.Weight)
	}
	return t.CutEmbedding(ids, l.Weight, l.Cut.Partners)
}

// Params lists the table.
func (l *Embedding) Params() []*Param { return []*Param{l.Weight} }

// State lists nothing.
func (l *Embedding) State() []State { return nil }

// Positions adds a learned vector for each position of a sequence; see
// Tape.AddPositions.
type Positions struct {
	Weight *Param // length x width
}

// NewPositions returns a layer for sequences of up to length tokens, whose
// parameter is name.weight. It starts as an Embedding does.
func NewPositions(name string, length, width int) *Positions {
	checkTable(name, "positions", "positions", length, width)
	return &Positions{table(name, nil, length, width)}
}

// Forward applies the layer.
func (l *Positions) Forward(t *Tape, x *Var) *Var { return t.AddPositions(x, l.Weight) }

// Params lists the table.
func (l *Positions) Params() []*Param { return []*Param{l.Weight} }

// State lists nothing.
func (l *Positions) State() []State { return nil }
