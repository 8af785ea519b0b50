package nn_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

// alone is a partner that only tells where it stands.
type alone struct{ rank, size int }

func (p alone) Rank() int { return p.rank }
func (p alone) Size() int { return p.size }
func (p alone) Start(device.ReduceOp, device.Buf, string) nn.Pending {
	panic("nobody is there")
}

// cutShapes are layers that are cut in every way, with whole sizes.
func cutShapes(p nn.Partners) []*nn.Param {
	var all []*nn.Param
	for _, l := range []*nn.Linear{
		nn.NewLinear("columns", 3, 11, nn.LinearConfig{Cut: nn.Cut{Partners: p}}),
		nn.NewLinear("rows", 11, 3, nn.LinearConfig{Cut: nn.Cut{Partners: p, Inputs: true}}),
		nn.NewLinear("heads", 4, 3*5*2, nn.LinearConfig{Cut: nn.Cut{Partners: p, Groups: 3, Unit: 2}}),
		nn.NewLinear("wide", 5000, 6, nn.LinearConfig{Cut: nn.Cut{Partners: p}}),
	} {
		all = append(all, l.Weight, l.Bias)
	}
	return append(all, nn.NewCutEmbedding("table", 7, 3, p).Weight)
}

// The parts of all partners are the whole: their shapes add up, their initial
// values are its slices, and Put undoes Take.
func TestPartsAreSlicesOfTheWhole(t *testing.T) {
	for size := 1; size <= 5; size++ {
		var want, got nntest.Wholes
		for _, p := range cutShapes(nil) {
			require.Nil(t, p.Part)
			require.Equal(t, p.Len(), p.WholeLen())
			require.Equal(t, p.Len(), p.Space())
			whole := make([]float32, p.Len())
			p.Init.Fill(whole, 3, p.Name)
			want.Add(p.Name, nil, whole)
		}
		sums, spaces := map[string]int{}, map[string]int{}
		for rank := range size {
			params := cutShapes(alone{rank, size})
			for i, p := range params {
				if size == 1 {
					require.Nil(t, p.Part)
				}
				values := make([]float32, p.Len())
				if p.Part == nil {
					p.Init.Fill(values, 3, p.Name)
				} else {
					sums[p.Name] += p.Len()
					p.Init.FillPart(values, p.Part, 3, p.Name)
					again := make([]float32, p.WholeLen())
					p.Part.Put(again, values)
					taken := make([]float32, p.Len())
					p.Part.Take(taken, again)
					require.Equal(t, values, taken)
				}
				require.LessOrEqual(t, p.Len(), p.Space())
				if rank == 0 {
					spaces[p.Name] = p.Space()
				}
				require.Equal(t, spaces[p.Name], p.Space(), "all partners leave as much room")
				got.Add(p.Name, p.Part, values)
				require.Equal(t, cutShapes(nil)[i].Shape, p.WholeShape())
			}
			for name, n := range sums {
				if rank == size-1 {
					w := map[string]int{"columns.weight": 33, "columns.bias": 11, "rows.weight": 33, "heads.weight": 120, "heads.bias": 30,
						"wide.weight": 30000, "wide.bias": 6, "table.weight": 21}
					require.Equal(t, w[name], n, name)
				}
			}
		}
		require.NoError(t, got.Compare(&want, 0), "%d partners", size)
	}
}

// A partner's share of queries, keys and values is a run of each of the three.
func TestHeadsAreDealtWhole(t *testing.T) {
	part := nn.NewAttention("attn", 10, nn.AttentionConfig{Heads: 5, Partners: alone{1, 3}}).In.Weight.Part
	require.Equal(t, []nn.Run{{4, 8}, {14, 18}, {24, 28}}, part.Runs)
	require.Equal(t, 12, part.Largest)
	require.Equal(t, []int{12, 10}, part.Shape())
	last := nn.NewAttention("attn", 10, nn.AttentionConfig{Heads: 5, Partners: alone{2, 3}}).Out.Weight.Part
	require.Equal(t, []nn.Run{{8, 10}}, last.Runs)
	require.Equal(t, 1, last.Dim)
	require.Equal(t, 4, last.Largest)
}

// cutBlock is a block that tests build whole (partners nil) and cut.
type cutBlock struct {
	name   string
	layers func(nn.Partners) []nn.Layer
	input  nn.Shape // F32, which gets a gradient; Rank 0: tokens
	loss   bool
}

func cutBlocks() []cutBlock {
	linear := func(p nn.Partners, name string, in, out int, inputs bool) *nn.Linear {
		return nn.NewLinear(name, in, out, nn.LinearConfig{Cut: nn.Cut{Partners: p, Inputs: inputs}})
	}
	return []cutBlock{
		{"columns and rows", func(p nn.Partners) []nn.Layer {
			return []nn.Layer{linear(p, "a", 5, 9, false), nn.ReLU{}, linear(p, "b", 9, 3, true)}
		}, nn.Plain(4, 5), false},
		{"columns, dropout, rows", func(p nn.Partners) []nn.Layer {
			a := linear(p, "a", 5, 9, false)
			return []nn.Layer{a, nn.Dropout{Name: "drop", P: 0.5, Part: a.OutputPart()}, linear(p, "b", 9, 3, true)}
		}, nn.Plain(4, 5), false},
		{"rows of many tokens, in two halves", func(p nn.Partners) []nn.Layer {
			return []nn.Layer{linear(p, "a", 4, 6, false), linear(p, "b", 6, 33, true)}
		}, nn.Plain(43, 47, 4), false},
		{"attention", func(p nn.Partners) []nn.Layer {
			return []nn.Layer{nn.NewAttention("attn", 10, nn.AttentionConfig{Heads: 5, Causal: true, Partners: p})}
		}, nn.Plain(2, 4, 10), false},
		{"embedding", func(p nn.Partners) []nn.Layer {
			return []nn.Layer{nn.NewCutEmbedding("table", 7, 3, p)}
		}, nn.Shape{}, false},
		{"classes", func(p nn.Partners) []nn.Layer {
			return []nn.Layer{linear(p, "fc", 5, 7, false)}
		}, nn.Plain(6, 5), true},
		{"tied", func(p nn.Partners) []nn.Layer {
			table := nn.NewCutEmbedding("table", 7, 3, p)
			return []nn.Layer{table, nn.ReLU{}, &nn.Linear{Weight: table.Weight, Cut: table.Cut}}
		}, nn.Shape{}, true},
	}
}

// run adds what a pass over the block gives.
func (b cutBlock) run(dev device.Device, p nn.Partners, pass nn.Pass, split bool, to *nntest.Wholes) (err error) {
	defer nn.Catch(&err)
	blocks := []nn.Block{nn.NewSeq("block", b.layers(p)...)}
	if err := nn.Materialize(dev, blocks, 1); err != nil {
		return err
	}
	params := nn.Params(blocks)
	for _, w := range params { // small values, so that sums are exact
		whole := make([]float32, w.WholeLen())
		nntest.Eighths(w.Name, whole)
		if w.Part == nil {
			copy(w.Value.F32(), whole)
		} else {
			w.Part.Take(w.Value.F32(), whole)
		}
	}
	tape := nn.NewTape(dev)
	pass.Training, pass.Seed = true, 3
	for micro := range 2 { // gradients add up
		pass.Micro = micro
		tape.Begin(pass)
		x := b.put(tape)
		y := nn.Forward(tape, blocks, x)[0]
		if b.loss {
			labels := []int32{0, 6, 3, 2, 5, 4}
			loss := tape.CrossEntropy(y, device.FromI32(labels), nn.CrossEntropyConfig{})
			tape.SeedLoss(loss, 0.5)
			to.Add(fmt.Sprint("loss ", micro), nil, []float32{float32(loss.Score().Sum()), float32(loss.Score().Correct())})
		} else {
			to.Add(fmt.Sprint("output ", micro), nil, y.Value.F32())
			seed := device.FromF32(make([]float32, y.Shape.Len()))
			nntest.Eighths("seed", seed.F32())
			tape.SeedGrad(y, seed)
		}
		if split {
			tape.BackwardInput()
			tape.BackwardWeight()
		} else {
			tape.Backward()
		}
		if g := x.Grad(); !g.IsZero() {
			to.Add(fmt.Sprint("gradient of the input ", micro), nil, g.F32())
		}
	}
	for _, w := range params {
		for use := range w.Uses() {
			g, _ := w.Grad(use)
			to.Add(fmt.Sprint(w.Name, " ", use), w.Part, g.F32())
		}
	}
	return nil
}

func (b cutBlock) put(t *nn.Tape) *nn.Var {
	if b.input.Rank == 0 {
		return t.Input(device.FromI32([]int32{6, 0, 3, 3, 2, 0}), nn.Plain(2, 3), false)
	}
	in := device.FromF32(make([]float32, b.input.Len()))
	nntest.Eighths("input", in.F32())
	return t.Input(in, b.input, true)
}

// Layers that are cut give the outputs and gradients of whole ones. Those that
// only multiply and add small multiples of 1/8 give them to the bit.
func TestCutLayersComputeWhatWholeOnesDo(t *testing.T) {
	for _, b := range cutBlocks() {
		bound := 0.0
		if b.loss || b.name == "attention" || b.name == "rows of many tokens, in two halves" {
			bound = 1e-6 // exponentials, and sums of thousands of products of three factors, are rounded
		}
		for _, dev := range devices() {
			var want nntest.Wholes
			require.NoError(t, b.run(dev, nil, nn.Pass{}, false, &want))
			for n := 2; n <= 5; n++ {
				for _, way := range []string{"", "split", "recompute"} {
					var got nntest.Wholes
					require.NoError(t, nntest.Together(n, func(p nn.Partners) error {
						return b.run(naive.New(), p, nn.Pass{Recompute: way == "recompute"}, way == "split", &got)
					}))
					require.NoError(t, got.Compare(&want, bound), "%s over %d partners on %s %s", b.name, n, dev.Name(), way)
				}
			}
		}
	}
}

// silent partners leave sums as they are.
type silent struct{ alone }

func (silent) Start(device.ReduceOp, device.Buf, string) nn.Pending { return settled{} }

type settled struct{}

func (settled) Wait() error { return nil }

func TestRepeatedCutPassesAllocateNothing(t *testing.T) {
	dev := devices()[2]
	for _, b := range cutBlocks() {
		blocks := []nn.Block{nn.NewSeq("block", b.layers(silent{alone{1, 2}})...)}
		require.NoError(t, nn.Materialize(dev, blocks, 1))
		tape := nn.NewTape(dev)
		in := device.FromF32(make([]float32, b.input.Len()))
		ids, labels := device.FromI32([]int32{6, 0, 3, 3, 2, 0}), device.FromI32([]int32{0, 6, 3, 2, 5, 4})
		seed := device.FromF32(make([]float32, 1<<17))
		pass := func() {
			tape.Begin(nn.Pass{Training: true})
			x := tape.Input(ids, nn.Plain(2, 3), false)
			if b.input.Rank > 0 {
				x = tape.Input(in, b.input, true)
			}
			y := nn.Forward(tape, blocks, x)[0]
			if b.loss {
				tape.SeedLoss(tape.CrossEntropy(y, labels, nn.CrossEntropyConfig{}), 1)
			} else {
				tape.SeedGrad(y, seed.Slice(0, y.Shape.Len()))
			}
			tape.Backward()
		}
		pass()
		require.Zero(t, testing.AllocsPerRun(5, pass), b.name)
	}
}
