package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
)

var (
	none     = nn.Precision{}
	products = nn.Precision{Type: device.F16, Products: true}
	all      = nn.Precision{Type: device.F16}
	brains   = nn.Precision{Type: device.BF16, Norms: true}
)

// network is a list of blocks with an input and labels.
type network struct {
	blocks []nn.Block
	input  device.Buf
	shape  nn.Shape
	labels device.Buf
}

// images is a small residual network with a convolution in groups.
func images() network {
	conv := func(name string, in, out int, c nn.ConvConfig) *nn.Conv2d {
		return nn.NewConv2d(name, in, out, nn.Square(3), c)
	}
	norm := nn.NewBatchNorm2d("residual.norm", 20, nn.BatchNormConfig{})
	second := conv("residual.conv", 20, 20, nn.ConvConfig{Padding: nn.Square(1), Groups: 2})
	residual := part{"residual", []nn.Layer{second, norm}, func(t *nn.Tape, in []*nn.Var) []*nn.Var {
		return t.List(norm.Fused(t, second.Forward(t, in[0]), in[0], device.ReLU))
	}}
	r := rand.New(rand.NewPCG(1, 2))
	x, labels := make([]float32, 4*3*12*12), []int32{3, 0, 1, 2}
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return network{
		blocks: []nn.Block{
			nn.NewSeq("stem", conv("stem.conv", 3, 20, nn.ConvConfig{Padding: nn.Square(1), Bias: true}), nn.NewBatchNorm2d("stem.norm", 20, nn.BatchNormConfig{}), nn.ReLU{}),
			residual,
			nn.NewSeq("head", nn.NewMaxPool2d("pool", nn.PoolConfig{Window: nn.Square(2)}), nn.GlobalAvgPool{Name: "average"}, nn.NewLinear("fc", 20, 4, nn.LinearConfig{})),
		},
		input: device.FromF32(x), shape: nn.Plain(4, 3, 12, 12), labels: device.FromI32(labels),
	}
}

// tokens is a transformer of one layer.
func tokens() network {
	const width, length = 24, 6
	attention := nn.NewAttention("block.attention", width, nn.AttentionConfig{Heads: 2, Causal: true})
	norm := nn.NewLayerNorm("block.norm", width, nn.LayerNormConfig{})
	block := part{"block", []nn.Layer{norm, attention}, func(t *nn.Tape, in []*nn.Var) []*nn.Var {
		return t.List(t.Add("block", in[0], attention.Forward(t, norm.Forward(t, in[0]))))
	}}
	ids := []int32{1, 2, 3, 4, 5, 6, 9, 8, 7, 6, 5, 4}
	return network{
		blocks: []nn.Block{
			nn.NewSeq("start", nn.NewEmbedding("table", 11, width), nn.NewPositions("positions", length, width), nn.Dropout{Name: "drop", P: 0.1}),
			block,
			nn.NewSeq("head", nn.NewLayerNorm("norm", width, nn.LayerNormConfig{}), nn.NewLinear("fc", width, 2*width, nn.LinearConfig{}), nn.GELU{Tanh: true}, nn.NewLinear("logits", 2*width, 11, nn.LinearConfig{})),
		},
		input: device.FromI32(ids), shape: nn.Plain(2, length), labels: device.FromI32(ids),
	}
}

// gradients runs one pass and returns loss and gradients, and what the pass held.
func (n network) gradients(t *testing.T, dev device.Device, p nn.Pass, scale float32) (loss float64, grads map[string][]float64, peak int) {
	t.Helper()
	require.NoError(t, nn.Materialize(dev, n.blocks, 5))
	p.Training, p.Seed = true, 3
	tape := nn.NewTape(dev)
	tape.Begin(p)
	out := nn.Forward(tape, n.blocks, tape.Input(n.input, n.shape, false))
	y := tape.CrossEntropy(out[0], n.labels, nn.CrossEntropyConfig{})
	tape.SeedLoss(y, scale/float32(n.labels.Len))
	tape.Backward()
	grads = map[string][]float64{}
	for _, q := range nn.Params(n.blocks) {
		g, ok := q.Grad(0)
		require.True(t, ok, q.Name)
		require.Equal(t, device.F32, g.Type)
		for _, v := range g.F32() {
			grads[q.Name] = append(grads[q.Name], float64(v)/float64(scale))
		}
	}
	return y.Score().Sum(), grads, tape.Arena().Peak()
}

func networks() map[string]func() network {
	return map[string]func() network{"images": images, "tokens": tokens}
}

// Gradients at 16 bits differ from those of float32 by roundings. Each of about
// 10 operations forward and 10 back rounds its result once, by at most u = 2^-11
// (2^-8 for BF16) of an element; they add up like sqrt(20) u/2, and norms, whose
// backward pass takes differences, multiply some of that by a few. 16 u holds
// with room, and a kernel that gets one thing wrong is far beyond it. In images,
// a rounding may also cross the kink of a ReLU or change which of four numbers is
// the largest: of about u of all elements the gradient then goes another way
// altogether, and their rms is sqrt(u) of all.
func TestGradientsInSixteenBits(t *testing.T) {
	for name, build := range networks() {
		for _, dev := range devices() {
			loss, want, held := build().gradients(t, dev, nn.Pass{}, 1)
			for _, p := range []nn.Precision{products, all, brains, {Type: device.F16, Norms: true}} {
				u := math.Ldexp(1, -11)
				if p.Type == device.BF16 {
					u = math.Ldexp(1, -8)
				}
				got, grads, peak := build().gradients(t, dev, nn.Pass{Precision: p}, 1024)
				require.InDelta(t, loss, got, 16*u*loss, "%s on %s at %+v", name, dev.Name(), p)
				bound := 16 * u
				if name == "images" {
					bound = 2 * math.Sqrt(u)
				}
				for param, g := range grads {
					difference, size := 0.0, 0.0
					for i, v := range want[param] {
						difference += (g[i] - v) * (g[i] - v)
						size += v * v
					}
					if name == "images" && param == "stem.conv.bias" {
						continue // before a norm its gradient is nothing but roundings
					}
					require.LessOrEqual(t, math.Sqrt(difference), bound*math.Sqrt(size), "%s of %s on %s at %+v", param, name, dev.Name(), p)
				}
				if !p.Products {
					require.Less(t, peak, held*6/10, "%s on %s at %+v", name, dev.Name(), p)
				}
			}
		}
	}
}

// Numbers that 16 bits hold exactly stay exact.
func TestExactInSixteenBits(t *testing.T) {
	build := func() network {
		conv := nn.NewConv2d("conv", 2, 3, nn.Square(3), nn.ConvConfig{Padding: nn.Square(1)})
		fc := nn.NewLinear("fc", 3*3*3, 2, nn.LinearConfig{})
		seq := nn.NewSeq("all", conv, nn.ReLU{}, nn.NewMaxPool2d("pool", nn.PoolConfig{Window: nn.Square(2)}), nn.Flatten{Name: "flat"}, fc)
		x := make([]float32, 2*2*6*6)
		for i := range x {
			x[i] = float32(i*7%5 - 2)
		}
		return network{blocks: []nn.Block{seq}, input: device.FromF32(x), shape: nn.Plain(2, 2, 6, 6)}
	}
	run := func(dev device.Device, p nn.Precision) (all []float64) {
		n := build()
		require.NoError(t, nn.Materialize(dev, n.blocks, 1))
		for _, q := range nn.Params(n.blocks) {
			for i := range q.Value.F32() {
				q.Value.F32()[i] = float32(i*5%3 - 1)
			}
		}
		tape := nn.NewTape(dev)
		tape.Begin(nn.Pass{Training: true, Precision: p})
		out := nn.Forward(tape, n.blocks, tape.Input(n.input, n.shape, false))[0]
		require.Equal(t, p.Type, out.Value.Type)
		y := tape.MeanSquaredError(out, device.FromF32(make([]float32, 4)))
		tape.SeedLoss(y, 0.5)
		tape.Backward()
		all = append(all, y.Score().Sum())
		for _, q := range nn.Params(n.blocks) {
			g, _ := q.Grad(0)
			for _, v := range g.F32() {
				all = append(all, float64(v))
			}
		}
		return all
	}
	for _, dev := range devices() {
		want := run(dev, none)
		require.Equal(t, want, run(dev, all), dev.Name())
		require.Equal(t, want, run(dev, products), dev.Name())
	}
}

// A block that is computed again has the same bits at every precision.
func TestRecomputeInSixteenBits(t *testing.T) {
	for name, build := range networks() {
		for _, p := range []nn.Precision{products, all, brains} {
			_, want, _ := build().gradients(t, naive.New(), nn.Pass{Precision: p}, 64)
			_, got, _ := build().gradients(t, naive.New(), nn.Pass{Precision: p, Recompute: true}, 64)
			require.Equal(t, want, got, "%s at %+v", name, p)
		}
	}
}

// counting is a device that counts how often masters are rounded.
type counting struct {
	device.Device
	kernels castCounter
}

func (c *counting) Kernels() device.Kernels { return &c.kernels }

type castCounter struct {
	device.Kernels
	casts int
}

func (c *castCounter) Cast(dst, src device.Buf) {
	c.casts++
	c.Kernels.Cast(dst, src)
}

// Passes share a rounded master until its owner says that it has changed; without
// a word every pass rounds.
func TestRoundedMastersAreShared(t *testing.T) {
	plain := naive.New()
	dev := &counting{Device: plain, kernels: castCounter{Kernels: plain.Kernels()}}
	l := nn.NewLinear("fc", 2, 1, nn.LinearConfig{})
	require.NoError(t, nn.Materialize(dev, []nn.Block{nn.NewSeq("all", l)}, 1))
	tapes := []*nn.Tape{nn.NewTape(dev), nn.NewTape(dev)}
	run := func(tape int, p nn.Pass) float32 {
		p.Precision = all
		tapes[tape].Begin(p)
		x := tapes[tape].Input(device.FromF32([]float32{1, 0}), nn.Plain(1, 2), false)
		return device.F16ToF32(l.Forward(tapes[tape], x).Value.U16()[0])
	}
	set := func(v float32) { l.Weight.Value.F32()[0], l.Bias.Value.F32()[0] = v, 0 }
	training := nn.Pass{Training: true}
	for i, step := range []struct {
		change bool
		tape   int
		pass   nn.Pass
		casts  int
	}{
		{false, 0, training, 1}, {false, 0, training, 1}, {false, 1, training, 1}, // nobody said a word
		{true, 0, training, 1}, {false, 1, training, 0}, {false, 0, training, 0},
		{true, 1, training, 1}, {false, 1, nn.Pass{}, 1}, {false, 0, nn.Pass{}, 0},
		{false, 0, nn.Pass{Training: true, Step: 1}, 1},
	} {
		set(float32(i + 1))
		want := float32(i + 1)
		if step.change {
			l.Weight.Changed()
		}
		if step.casts == 0 {
			want = 0
		}
		before := dev.kernels.casts
		got := run(step.tape, step.pass)
		require.Equal(t, step.casts, dev.kernels.casts-before, "pass %d", i)
		if want != 0 {
			require.Equal(t, want, got, "pass %d", i)
		}
	}
}
