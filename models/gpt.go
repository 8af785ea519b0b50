package models

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// gpt is GPT-2 (Radford et al. 2019) in the form of nanoGPT, whose names it
// has: embeddings of tokens and positions, blocks of causal attention and a
// perceptron, each after a LayerNorm and beside a shortcut, a last LayerNorm,
// and logits by the table of token embeddings, or by a matrix of their own, so that
// the gradient of the table is sparse. There is no dropout of attention
// weights.
//
//	tokens N x T -> vectors N x T x features -> logits N x T x vocabulary
func gpt(c Config) ([]nn.Block, error) {
	if err := c.onlyText(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	layers, heads, features := c.Layers, c.Heads, c.Features
	switch {
	case layers < 1 || heads < 1 || features < 1:
		return nil, fmt.Errorf("%d layers, %d heads and a width of %d: all must be at least 1", layers, heads, features)
	case features%heads != 0:
		return nil, fmt.Errorf("a width of %d is not divided by %d heads", features, heads)
	}
	first := &embedBlock{
		tokens:    nn.NewCutEmbedding("transformer.wte", c.Vocabulary, features, c.Partners),
		positions: nn.NewPositions("transformer.wpe", c.Context, features),
		dropout:   nn.Dropout{Name: "transformer.drop", P: c.Dropout},
	}
	first.tokens.Weight.Init, first.positions.Weight.Init = normal(0.02), normal(0.02)
	blocks := []nn.Block{first}
	for i := range layers {
		blocks = append(blocks, newTransformer(fmt.Sprintf("h.%d", i), features, heads, layers, c))
	}
	logits := &nn.Linear{Weight: first.tokens.Weight, Cut: first.tokens.Cut}
	if c.SparseEmbedding {
		first.tokens.Weight.Sparse = true
		logits = nn.NewLinear("lm_head", features, c.Vocabulary, nn.LinearConfig{NoBias: true, Cut: first.tokens.Cut})
		logits.Weight.Init = normal(0.02)
	}
	return append(blocks, nn.NewSeq("head", nn.NewLayerNorm("transformer.ln_f", features, nn.LayerNormConfig{}), logits)), nil
}

// WithDefaults returns c with the sizes of a gpt that are zero replaced by their
// defaults. Other models are as they were.
func (c Config) WithDefaults() Config {
	if TakesText(c.Name) {
		c.Layers, c.Heads, c.Features = cmp.Or(c.Layers, 4), cmp.Or(c.Heads, 4), cmp.Or(c.Features, 128)
	}
	return c
}

func normal(deviation float64) nn.Init { return nn.Init{Kind: nn.Normal, Scale: float32(deviation)} }

// onlyText refuses the settings of other models.
func (c Config) onlyText() error {
	if err := c.noResNet(); err != nil {
		return err
	}
	if c.Hidden != nil {
		return errors.New("hidden widths are a setting of mlp and cnn")
	}
	return nil
}

// embedBlock is the vectors of tokens and of their positions, added.
type embedBlock struct {
	tokens    *nn.Embedding
	positions *nn.Positions
	dropout   nn.Dropout
}

func (b *embedBlock) Name() string { return "embed" }

func (b *embedBlock) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var {
	x := b.positions.Forward(t, b.tokens.Forward(t, nn.Only("embed", in)))
	return t.List(b.dropout.Forward(t, x))
}

func (b *embedBlock) Params() []*nn.Param {
	return append(b.tokens.Params(), b.positions.Params()...)
}

func (b *embedBlock) State() []nn.State { return nil }

// transformer is x + attention(norm(x)), and that + perceptron(norm(that)).
type transformer struct {
	name, attention    string
	heads              int // of this rank
	norm1, norm2       *nn.LayerNorm
	queries, project   *nn.Linear // queries is those, keys and values
	expand, shrink     *nn.Linear
	dropped1, dropped2 nn.Dropout
}

// newTransformer starts weights as GPT-2 does: normal with deviation 0.02, and
// what is added to the shortcut smaller by the root of the 2 layers additions.
//
// Partners share the heads of the attention and the hidden features of the
// perceptron: each block sums over them once after either, and once before
// either in the backward pass.
func newTransformer(name string, features, heads, layers int, c Config) *transformer {
	full, dropout := "transformer."+name, c.Dropout
	linear := func(layer string, in, out int, deviation float64, cut nn.Cut) *nn.Linear {
		cut.Partners = c.Partners
		l := nn.NewLinear(full+"."+layer, in, out, nn.LinearConfig{Cut: cut})
		l.Weight.Init, l.Bias.Init = normal(deviation), nn.Init{}
		return l
	}
	added := 0.02 / math.Sqrt(2*float64(layers))
	return &transformer{
		name: name, attention: full + ".attn", heads: nn.Cut{Partners: c.Partners}.Own(heads),
		norm1:    nn.NewLayerNorm(full+".ln_1", features, nn.LayerNormConfig{}),
		queries:  linear("attn.c_attn", features, 3*features, 0.02, nn.Cut{Groups: 3, Unit: features / heads}),
		project:  linear("attn.c_proj", features, features, added, nn.Cut{Inputs: true, Unit: features / heads}),
		dropped1: nn.Dropout{Name: full + ".attn.resid_dropout", P: dropout},
		norm2:    nn.NewLayerNorm(full+".ln_2", features, nn.LayerNormConfig{}),
		expand:   linear("mlp.c_fc", features, 4*features, 0.02, nn.Cut{}),
		shrink:   linear("mlp.c_proj", 4*features, features, added, nn.Cut{Inputs: true}),
		dropped2: nn.Dropout{Name: full + ".mlp.dropout", P: dropout},
	}
}

func (b *transformer) Name() string { return b.name }

func (b *transformer) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var {
	x := nn.Only(b.name, in)
	y := t.Attention(b.attention, b.queries.Forward(t, b.norm1.Forward(t, x)), b.heads, true)
	x = t.Add(b.name, x, b.dropped1.Forward(t, b.project.Forward(t, y)))
	y = t.Activate(device.GELU, b.expand.Forward(t, b.norm2.Forward(t, x)))
	return t.List(t.Add(b.name, x, b.dropped2.Forward(t, b.shrink.Forward(t, y))))
}

// Params lists the parameters in order of use.
func (b *transformer) Params() (out []*nn.Param) {
	for _, l := range []nn.Layer{b.norm1, b.queries, b.project, b.norm2, b.expand, b.shrink} {
		out = append(out, l.Params()...)
	}
	return out
}

func (b *transformer) State() []nn.State { return nil }
