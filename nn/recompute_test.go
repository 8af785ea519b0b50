package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

// part is a block made of a function.
type part struct {
	name   string
	layers []nn.Layer
	call   func(t *nn.Tape, in []*nn.Var) []*nn.Var
}

func (p part) Name() string { return p.name }

func (p part) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var { return p.call(t, in) }

func (p part) Params() []*nn.Param {
	var out []*nn.Param
	for _, l := range p.layers {
		out = append(out, l.Params()...)
	}
	return out
}

func (p part) State() []nn.State { return nil }

// branches are blocks that pass inputs through, give one result twice, once in
// another shape, use an input in several blocks, share a layer and drop under
// one name.
func branches() nntest.Case {
	fc := nn.NewLinear("fc", 8, 8, nn.LinearConfig{})
	last := nn.NewLinear("last", 8, 8, nn.LinearConfig{})
	blocks := []nn.Block{
		part{"split", []nn.Layer{fc}, func(t *nn.Tape, in []*nn.Var) []*nn.Var {
			y := t.Dropout("drop", t.Activate(device.Tanh, fc.Forward(t, in[0])), 0.25)
			return t.List(in[0], y, t.Reshape("split", y, 3, 2, 2, 2), t.Reshape("split", in[0], 24))
		}},
		part{"mix", []nn.Layer{fc}, func(t *nn.Tape, in []*nn.Var) []*nn.Var {
			a := t.Add("mix", in[0], fc.Forward(t, in[1]))
			b := t.Add("mix", in[1], t.Flatten("mix", in[2]))
			c := t.Add("mix", t.Reshape("mix", in[3], 3, 8), a)
			return t.List(a, t.Dropout("drop", b, 0.25), c, c)
		}},
		part{"idle", nil, func(t *nn.Tape, in []*nn.Var) []*nn.Var { return in }},
		part{"join", []nn.Layer{last}, func(t *nn.Tape, in []*nn.Var) []*nn.Var {
			x := t.Add("join", t.Add("join", in[0], in[1]), t.Add("join", in[2], in[3]))
			return t.List(t.Activate(device.ReLU, last.Forward(t, x)))
		}},
	}
	return nntest.Case{Blocks: blocks, Inputs: []nn.Shape{nn.Plain(3, 8)}, Random: true,
		Apply: func(t *nn.Tape, in []*nn.Var) *nn.Var { return nn.Forward(t, blocks, in...)[0] }}
}

func TestRecomputeOfBranches(t *testing.T) {
	for _, dev := range devices() {
		nntest.CheckRecompute(t, dev, branches())
		nntest.CheckFrozen(t, dev, branches())
	}
}

// What the forward pass keeps is the outputs of the blocks.
func TestRecomputeForgetsTheInside(t *testing.T) {
	const width, rows, depth = 1 << 12, 4, 6
	dev := naive.New()
	var blocks []nn.Block
	for range depth {
		blocks = append(blocks, part{"block", nil, func(t *nn.Tape, in []*nn.Var) []*nn.Var {
			x := in[0]
			for range 5 {
				x = t.Activate(device.Tanh, x)
			}
			return t.List(x)
		}})
	}
	x, err := dev.Alloc(device.F32, rows*width)
	require.NoError(t, err)
	peak := func(recompute bool) int {
		tape := nn.NewTape(dev)
		tape.Begin(nn.Pass{Training: true, Recompute: recompute})
		y := nn.Forward(tape, blocks, tape.Input(x, nn.Plain(rows, width), true))[0]
		tape.SeedGrad(y, x)
		tape.Backward()
		return tape.Arena().Peak() / x.Size()
	}
	require.Equal(t, 5*depth+1, peak(false), "all activations, one gradient")
	require.Equal(t, depth-1+5+1, peak(true), "outputs of the blocks, of the last the inside, one gradient")
}

// A pass that fails in a block, at first or again, leaves nothing behind.
func TestRecomputeSurvivesAMistake(t *testing.T) {
	dev := naive.New()
	fails := 0
	x := device.FromF32(make([]float32, 8))
	blocks := []nn.Block{part{"block", nil, func(t *nn.Tape, in []*nn.Var) []*nn.Var {
		y := t.Activate(device.Tanh, in[0])
		if fails--; fails == 0 {
			t.Add("sum", y, t.Input(x, nn.Plain(8), false))
		}
		return t.List(t.Activate(device.Tanh, y))
	}}}
	tape := nn.NewTape(dev)
	pass := func(at int) (err error) {
		defer nn.Catch(&err)
		fails = at
		tape.Begin(nn.Pass{Training: true, Recompute: true})
		y := nn.Forward(tape, blocks, tape.Input(x, nn.Plain(2, 4), true))[0]
		tape.SeedGrad(y, x)
		tape.Backward()
		return nil
	}
	require.NoError(t, pass(0))
	peak := tape.Arena().Peak()
	for range 3 {
		require.ErrorContains(t, pass(1), "differ in shape")
		require.ErrorContains(t, pass(2), "differ in shape")
	}
	require.NoError(t, pass(0))
	require.Equal(t, peak, tape.Arena().Peak())
}

// A block that is no pure function of its inputs is told so.
func TestRecomputeOfAnotherFunction(t *testing.T) {
	dev := naive.New()
	a, b := nn.NewLinear("a", 4, 4, nn.LinearConfig{}), nn.NewLinear("b", 4, 4, nn.LinearConfig{})
	materialize(t, dev, a, b)
	x := device.FromF32(make([]float32, 4))
	for want, change := range map[string]func(t *nn.Tape, x *nn.Var, runs int) *nn.Var{
		"b.weight (recompute): the block uses its parameters in another order than it did at first": func(t *nn.Tape, x *nn.Var, runs int) *nn.Var {
			return []*nn.Linear{a, b}[runs].Forward(t, x)
		},
		"drop (recompute): the block draws more random numbers than it did at first": func(t *nn.Tape, x *nn.Var, runs int) *nn.Var {
			return t.Dropout("drop", a.Forward(t, x), 0.5*float32(runs))
		},
	} {
		runs := 0
		blocks := []nn.Block{part{"block", []nn.Layer{a, b}, func(t *nn.Tape, in []*nn.Var) []*nn.Var {
			runs++
			return t.List(change(t, in[0], runs-1))
		}}}
		err := func() (err error) {
			defer nn.Catch(&err)
			tape := nn.NewTape(dev)
			tape.Begin(nn.Pass{Training: true, Recompute: true})
			y := nn.Forward(tape, blocks, tape.Input(x, nn.Plain(1, 4), false))[0]
			tape.SeedGrad(y, x)
			tape.Backward()
			return nil
		}()
		require.EqualError(t, err, want)
	}
}
