package nn

// AttentionConfig holds the choices of an Attention layer.
type AttentionConfig struct {
	Heads  int  // must divide the width
	Causal bool // a token sees none after it
	NoBias bool
	// Partners, where there are several, share the heads: each has a run of them,
	// with its columns of queries, keys and values, and its rows of the output.
	Partners Partners
}

// Attention is multi-head self-attention: a Linear to queries, keys and values,
// attention among the tokens of each sequence, and a Linear of the result.
type Attention struct {
	In, Out *Linear
	Config  AttentionConfig
	name    string
}

// NewAttention returns a layer whose parameters are name.in_proj.weight (3 width
// x width: queries, keys, values), name.in_proj.bias, name.out_proj.weight and
// name.out_proj.bias. Both start as a Linear does.
func NewAttention(name string, width int, c AttentionConfig) *Attention {
	if width < 1 || c.Heads < 1 || width%c.Heads != 0 {
		fail(name, "attention", "a width of %d and %d heads: the heads must divide the width", width, c.Heads)
	}
	unit := width / c.Heads
	return &Attention{
		In:     NewLinear(name+".in_proj", width, 3*width, LinearConfig{NoBias: c.NoBias, Cut: Cut{Partners: c.Partners, Groups: 3, Unit: unit}}),
		Out:    NewLinear(name+".out_proj", width, width, LinearConfig{NoBias: c.NoBias, Cut: Cut{Partners: c.Partners, Inputs: true, Unit: unit}}),
		Config: c, name: name,
	}
}

// Forward applies the layer to sequences x tokens x width.
func (l *Attention) Forward(t *Tape, x *Var) *Var {
	qkv := l.In.Forward(t, x)
	return l.Out.Forward(t, t.Attention(l.name, qkv, l.Out.Cut.Own(l.Config.Heads), l.Config.Causal))
}

// Params lists the parameters of both projections.
func (l *Attention) Params() []*Param { return append(l.In.Params(), l.Out.Params()...) }

// State lists nothing.
func (l *Attention) State() []State { return nil }
