package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

func sequenceRows() []row {
	type vars = []*nn.Var
	ids := device.FromI32([]int32{2, 0, 2, 2, 1, 0})
	tokens := func(t *nn.Tape) *nn.Var { return t.Input(ids, nn.Plain(2, 3), false) }
	layer := func(in nn.Shape, make func() nn.Layer) func() nntest.Case {
		return func() nntest.Case { return of(make(), in, nil) }
	}
	return []row{
		{"linear of sequences", layer(nn.Plain(2, 3, 5), func() nn.Layer { return nn.NewLinear("fc", 5, 4, nn.LinearConfig{}) })},
		{"layer norm", layer(nn.Plain(5, 7), func() nn.Layer { return nn.NewLayerNorm("ln", 7, nn.LayerNormConfig{}) })},
		{"layer norm of sequences", layer(nn.Plain(2, 3, 6), func() nn.Layer { return nn.NewLayerNorm("ln", 6, nn.LayerNormConfig{Epsilon: 0.1}) })},
		{"embedding", func() nntest.Case {
			l := nn.NewEmbedding("wte", 4, 5)
			return nntest.Case{Layers: []nn.Layer{l}, Apply: func(t *nn.Tape, _ vars) *nn.Var { return l.Forward(t, tokens(t)) }}
		}},
		{"positions", layer(nn.Plain(3, 2, 5), func() nn.Layer { return nn.NewPositions("wpe", 4, 5) })},
		{"attention of sequences", layer(nn.Plain(2, 5, 6), func() nn.Layer { return nn.NewAttention("attn", 6, nn.AttentionConfig{Heads: 2}) })},
		{"causal attention", layer(nn.Plain(2, 4, 3), func() nn.Layer {
			return nn.NewAttention("attn", 3, nn.AttentionConfig{Heads: 1, Causal: true, NoBias: true})
		})},
		{"attention of one token", layer(nn.Plain(3, 1, 4), func() nn.Layer { return nn.NewAttention("attn", 4, nn.AttentionConfig{Heads: 2, Causal: true}) })},
		{"tied weights", func() nntest.Case {
			wte := nn.NewEmbedding("wte", 4, 5)
			head := &nn.Linear{Weight: wte.Weight}
			labels := device.FromI32([]int32{0, 3, 1, 2, 2, 1})
			return nntest.Case{Layers: []nn.Layer{wte}, Apply: func(t *nn.Tape, _ vars) *nn.Var {
				return t.CrossEntropy(head.Forward(t, wte.Forward(t, tokens(t))), labels, nn.CrossEntropyConfig{})
			}}
		}},
	}
}

// A tied weight has a slot for each use, delivered in the reverse order.
func TestTiedWeightsHaveASlotForEachUse(t *testing.T) {
	for _, dev := range devices() {
		wte := nn.NewEmbedding("wte", 3, 2)
		materialize(t, dev, wte)
		copy(wte.Weight.Value.F32(), []float32{1, 2, 3, 4, 5, 6})
		var uses []int
		wte.Weight.OnGrad(func(_ *nn.Param, use, _ int) { uses = append(uses, use) })
		tape := nn.NewTape(dev)
		tape.Begin(nn.Pass{Training: true})
		x := wte.Forward(tape, tape.Input(device.FromI32([]int32{2, 0}), nn.Plain(2), false))
		y := tape.Linear(x, wte.Weight, nil)
		require.Equal(t, []float32{17, 39, 61, 5, 11, 17}, y.Value.F32())
		tape.SeedGrad(y, device.FromF32([]float32{1, 0, 0, 0, 1, 0}))
		tape.Backward()
		require.Equal(t, []int{1, 0}, uses)
		lookup, _ := wte.Weight.Grad(0)
		logits, _ := wte.Weight.Grad(1)
		require.Equal(t, []float32{3, 4, 0, 0, 1, 2}, lookup.F32(), "rows 1 and 0 of the table, where tokens 0 and 2 are")
		require.Equal(t, []float32{5, 6, 1, 2, 0, 0}, logits.F32())
	}
}

// Equal keys share the attention evenly: the result is a running mean.
func TestCausalAttentionSeesThePastOnly(t *testing.T) {
	for _, dev := range devices() {
		tape := nn.NewTape(dev)
		for _, causal := range []bool{true, false} {
			tape.Begin(nn.Pass{})
			// Query, key, value of four tokens.
			qkv := tape.Input(device.FromF32([]float32{1, 1, 2, 1, 1, 4, 1, 1, 6, 1, 1, 8}), nn.Plain(1, 4, 3), false)
			want := []float32{5, 5, 5, 5}
			if causal {
				want = []float32{2, 3, 4, 5}
			}
			require.InDeltaSlice(t, want, tape.Attention("attn", qkv, 1, causal).Value.F32(), 2e-6) // thirds and exponentials are rounded
		}
	}
}

func TestLongAttentionMatchesNaive(t *testing.T) {
	s := nn.Plain(1, 150, 3*2*20)
	values := make([]float32, s.Len())
	nntest.Eighths("long", values)
	var want []float32
	for _, dev := range devices() {
		tape := nn.NewTape(dev)
		tape.Begin(nn.Pass{Training: true})
		x := tape.Input(device.FromF32(values), s, true)
		y := tape.Attention("attn", x, 2, true)
		tape.SeedGrad(y, device.FromF32(values[:y.Shape.Len()]))
		tape.Backward()
		got := append(append([]float32(nil), y.Value.F32()...), x.Grad().F32()...)
		if want == nil {
			want = got
		}
		require.InDeltaSlice(t, want, got, 1e-5) // values of about 1, sums of 150 terms
	}
}

func sequenceTwins() []twin {
	type index = func(n, c, y, x int) float64
	plain := nn.Plain
	rounded := 0x1p-21 // values below 3, a few roundings
	elementwise := func(name string, l nn.Layer, f func(float64) float64) twin {
		return twin{name, l, []nn.Shape{nn.Image(2, 17, 2, 3)}, nn.Image(2, 17, 2, 3), func(in []array, _ [][]float64) index {
			return func(n, c, y, x int) float64 { return f(in[0].at(n, c, y, x)) }
		}, rounded}
	}
	return []twin{
		elementwise("gelu", nn.GELU{}, func(v float64) float64 { return v * (1 + math.Erf(v/math.Sqrt2)) / 2 }),
		elementwise("gelu by tanh", nn.GELU{Tanh: true}, func(v float64) float64 {
			return v * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v))) / 2
		}),
		elementwise("silu", nn.SiLU{}, func(v float64) float64 { return v / (1 + math.Exp(-v)) }),
		{"positions", nn.NewPositions("wpe", 5, 3), []nn.Shape{plain(2, 4, 3)}, plain(2, 4, 3), func(in []array, p [][]float64) index {
			return func(n, c, y, _ int) float64 { return in[0].v[(n*4+c)*3+y] + p[0][c*3+y] }
		}, 0},
		{"layer norm", nn.NewLayerNorm("ln", 9, nn.LayerNormConfig{}), []nn.Shape{plain(3, 9)}, plain(3, 9), func(in []array, p [][]float64) index {
			return func(n, c, _, _ int) float64 {
				v, variance := in[0].v[n*9:][:9], 0.0
				m := mean(v)
				for _, e := range v {
					variance += (e - m) * (e - m) / 9
				}
				return p[0][c]*(v[c]-m)/math.Sqrt(variance+1e-5) + p[1][c]
			}
		}, rounded},
	}
}

func sequenceOracles() []oracle {
	type vars = []*nn.Var
	type nodes = []*G.Node
	matrix := nn.Plain(3, 5)
	constant := func(v float32) *G.Node { return G.NewConstant(v) }
	fc := nn.NewEmbedding("wte", 4, 5)
	return []oracle{
		{name: "silu", in: []nn.Shape{matrix},
			ours:   func(t *nn.Tape, x vars) *nn.Var { return nn.SiLU{}.Forward(t, x[0]) },
			theirs: func(x, _ nodes) *G.Node { return G.Must(G.HadamardProd(x[0], G.Must(G.Sigmoid(x[0])))) }},
		{name: "gelu by tanh", in: []nn.Shape{matrix},
			ours: func(t *nn.Tape, x vars) *nn.Var { return nn.GELU{Tanh: true}.Forward(t, x[0]) },
			theirs: func(x, _ nodes) *G.Node {
				cube := G.Must(G.HadamardProd(G.Must(G.Square(x[0])), x[0]))
				inner := G.Must(G.Add(x[0], G.Must(G.Mul(cube, constant(0.044715)))))
				tanh := G.Must(G.Tanh(G.Must(G.Mul(inner, constant(float32(math.Sqrt(2/math.Pi)))))))
				return G.Must(G.Mul(G.Must(G.HadamardProd(x[0], G.Must(G.Add(tanh, constant(1))))), constant(0.5)))
			}},
		{name: "embedding by one-hot products", layer: fc,
			ours: func(t *nn.Tape, _ vars) *nn.Var {
				return fc.Forward(t, t.Input(device.FromI32([]int32{1, 3, 1}), nn.Plain(3), false))
			},
			theirs: func(_, p nodes) *G.Node {
				return G.Must(G.Mul(oneHot([]int{1, 3, 1}, 4), p[0]))
			}},
		{name: "attention", in: []nn.Shape{nn.Plain(1, 3, 12)},
			ours: func(t *nn.Tape, x vars) *nn.Var { return t.Attention("attn", x[0], 1, false) },
			theirs: func(x, _ nodes) *G.Node {
				rows := G.Must(G.Reshape(x[0], []int{3, 12}))
				part := func(i int) *G.Node { return G.Must(G.Mul(rows, columns(i*4, 4, 12))) }
				scores := G.Must(G.Mul(G.Must(G.Mul(part(0), G.Must(G.Transpose(part(1), 1, 0)))), constant(0.5)))
				return G.Must(G.Reshape(G.Must(G.Mul(G.Must(G.SoftMax(scores)), part(2))), []int{1, 3, 4}))
			}},
	}
}

// oneHot is a constant matrix with a one in each row.
func oneHot(at []int, width int) *G.Node {
	v := make([]float32, len(at)*width)
	for i, j := range at {
		v[i*width+j] = 1
	}
	return G.NewConstant(tensor.New(tensor.WithShape(len(at), width), tensor.WithBacking(v)))
}

// columns is the constant matrix that takes n of width columns.
func columns(at, n, width int) *G.Node {
	v := make([]float32, width*n)
	for j := range n {
		v[(at+j)*n+j] = 1
	}
	return G.NewConstant(tensor.New(tensor.WithShape(width, n), tensor.WithBacking(v)))
}
