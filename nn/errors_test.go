package nn_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
)

// Every mistake becomes an error that names the layer and the shapes.
func TestMistakesAreNamed(t *testing.T) {
	image := func(c, h, w int) nn.Shape { return nn.Image(2, c, h, w) }
	conv := func(k int, c nn.ConvConfig) nn.Layer {
		return nn.NewConv2d("layer1.0.conv1", 3, 4, nn.Square(k), c)
	}
	pool := func(c nn.PoolConfig) nn.Layer { return nn.NewMaxPool2d("maxpool", c) }
	norm := nn.NewBatchNorm2d("bn1", 3, nn.BatchNormConfig{})
	call := func(f func(t *nn.Tape, x *nn.Var)) nn.Layer { return function{f} }
	for _, c := range []struct {
		layer nn.Layer
		in    nn.Shape
		want  string
	}{
		{nn.NewLinear("fc", 5, 2, nn.LinearConfig{}), nn.Plain(2, 4),
			"fc (linear): input of shape 2 x 4 has 4 columns, the weight of shape 2 x 5 takes 5"},
		{nn.NewLinear("fc", 5, 2, nn.LinearConfig{}), image(5, 1, 1),
			"fc (linear): input of shape 2 x 5 x 1 x 1 (nChw16c), want rows x 5: flatten it first"},
		{conv(3, nn.ConvConfig{}), image(1, 8, 8),
			"layer1.0.conv1 (conv2d): input of shape 2 x 1 x 8 x 8 (nChw16c) has 1 channels, the weight of shape 4 x 3 x 3 x 3 takes 3"},
		{conv(3, nn.ConvConfig{}), image(3, 2, 8),
			"layer1.0.conv1 (conv2d): the window 3 x 3 is larger than the image: input of shape 2 x 3 x 2 x 8 (nChw16c), 2 x 8 with padding"},
		{conv(3, nn.ConvConfig{Padding: nn.Square(-1)}), image(3, 8, 8), "layer1.0.conv1 (conv2d): padding -1 x -1 is negative"},
		{conv(3, nn.ConvConfig{Stride: nn.Extent{H: 2}}), image(3, 8, 8),
			"layer1.0.conv1 (conv2d): window 3 x 3 with stride 2 x 0: all must be at least 1"},
		{conv(3, nn.ConvConfig{Dilation: nn.Extent{H: 1}}), image(3, 8, 8), "layer1.0.conv1 (conv2d): dilation 1 x 0: both must be at least 1"},
		{conv(3, nn.ConvConfig{Dilation: nn.Square(4)}), image(3, 8, 8),
			"layer1.0.conv1 (conv2d): the window 9 x 9 is larger than the image: input of shape 2 x 3 x 8 x 8 (nChw16c), 8 x 8 with padding"},
		{call(func(t *nn.Tape, x *nn.Var) { conv(3, nn.ConvConfig{Groups: 3}) }), image(3, 8, 8),
			"layer1.0.conv1 (conv2d): 3 groups of 3 to 4 channels: the groups must divide both"},
		{conv(3, nn.ConvConfig{}), nn.Plain(2, 48), "layer1.0.conv1 (conv2d): input of shape 2 x 48, want images: N x 3 x height x width"},
		{norm, image(4, 2, 2), "bn1 (batch norm): input of shape 2 x 4 x 2 x 2 (nChw16c) has 4 channels, the layer has 3"},
		{norm, nn.Plain(2, 3, 2, 2), "bn1 (batch norm): input of shape 2 x 3 x 2 x 2, want images in the nChw16c layout or a matrix"},
		{call(func(t *nn.Tape, x *nn.Var) {
			norm.Fused(t, x, t.Activate(device.ReLU, t.Pool("p", device.MaxPool, x, nn.PoolConfig{Window: nn.Square(2)})), device.ReLU)
		}),
			image(3, 2, 2), "bn1 (batch norm): residual of shape 2 x 3 x 1 x 1 (nChw16c), want the input's 2 x 3 x 2 x 2 (nChw16c)"},
		{call(func(t *nn.Tape, x *nn.Var) { norm.Fused(t, x, nil, device.Tanh) }), image(3, 2, 2), "bn1 (batch norm): activation 2 is neither identity nor ReLU"},
		{pool(nn.PoolConfig{Window: nn.Square(2)}), nn.Plain(2, 3, 4, 4), "maxpool (pool): input of shape 2 x 3 x 4 x 4, want images in the nChw16c layout"},
		{pool(nn.PoolConfig{Window: nn.Square(5)}), image(3, 4, 4),
			"maxpool (pool): the window 5 x 5 is larger than the image: input of shape 2 x 3 x 4 x 4 (nChw16c), 4 x 4 with padding"},
		{pool(nn.PoolConfig{Window: nn.Square(3), Padding: nn.Square(2)}), image(3, 4, 4), "maxpool (pool): padding 2 x 2 is more than half of the window 3 x 3"},
		{pool(nn.PoolConfig{}), image(3, 4, 4), "maxpool (pool): window 0 x 0 with stride 0 x 0: all must be at least 1"},
		{nn.GlobalAvgPool{Name: "avgpool"}, nn.Plain(2, 3), "avgpool (global average): input of shape 2 x 3, want images in the nChw16c layout"},
		{nn.Dropout{Name: "drop", P: 1}, nn.Plain(2, 3), "drop (dropout): probability 1 is outside of [0, 1)"},
		{call(func(t *nn.Tape, x *nn.Var) { t.Add("sum", x, t.Flatten("flat", x)) }), nn.Plain(2, 3, 1, 1), "sum (add): 2 x 3 x 1 x 1 and 2 x 3 differ in shape"},
		{call(func(t *nn.Tape, x *nn.Var) { t.Reshape("view", x, 4, 2) }), nn.Plain(2, 3), "view (reshape): input of shape 2 x 3 does not become 4 x 2"},
		{call(func(t *nn.Tape, x *nn.Var) { t.Concat("cat", x, t.Flatten("flat", x)) }), nn.Plain(2, 3, 2, 2), "cat (concat): 2 x 12 does not join 2 x 3 x 2 x 2 along dimension 1"},
		{call(func(t *nn.Tape, x *nn.Var) { t.Concat("cat") }), nn.Plain(2, 3), "cat (concat): no inputs"},
		{call(func(t *nn.Tape, x *nn.Var) { t.Concat("cat", x) }), nn.Plain(2), "cat (concat): input of shape 2, want images or matrices"},
		{call(func(t *nn.Tape, x *nn.Var) { t.PadChannels("pad", x, 2) }), nn.Plain(2, 3), "pad (pad channels): input of shape 2 x 3 does not grow to 2 channels"},
		{call(func(t *nn.Tape, x *nn.Var) { t.Reorder("order", x, device.Blocked16) }), nn.Plain(2, 3), "order (reorder): input of shape 2 x 3, want images"},
		{call(func(t *nn.Tape, x *nn.Var) { t.CrossEntropy(x, device.FromI32([]int32{1}), nn.CrossEntropyConfig{}) }), nn.Plain(2, 3),
			"cross-entropy: 1 labels of i32 for logits of shape 2 x 3, want one i32 a row"},
		{call(func(t *nn.Tape, x *nn.Var) { t.CrossEntropy(x, device.FromI32([]int32{1, 3}), nn.CrossEntropyConfig{}) }), nn.Plain(2, 3),
			"device: row 1 has label 3, outside of 0..2"},
		{call(func(t *nn.Tape, x *nn.Var) {
			t.CrossEntropy(x, device.FromI32([]int32{1, 2}), nn.CrossEntropyConfig{Smoothing: 1})
		}), nn.Plain(2, 3), "cross-entropy: label smoothing 1 is outside of [0, 1)"},
		{call(func(t *nn.Tape, x *nn.Var) { t.CrossEntropy(x, device.Buf{}, nn.CrossEntropyConfig{}) }), image(3, 1, 1),
			"cross-entropy: logits of shape 2 x 3 x 1 x 1 (nChw16c), want rows x classes"},
		{call(func(t *nn.Tape, x *nn.Var) { t.MeanSquaredError(x, device.FromF32([]float32{1})) }), nn.Plain(2, 3),
			"mean squared error: target of 1 x f32 for an input of shape 2 x 3"},
		{call(func(t *nn.Tape, x *nn.Var) { t.MeanSquaredError(x, x.Value) }), image(3, 1, 1),
			"mean squared error: input of shape 2 x 3 x 1 x 1 (nChw16c): flatten it first"},
		{nn.NewLayerNorm("ln_1", 4, nn.LayerNormConfig{}), nn.Plain(2, 3), "ln_1 (layer norm): input of shape 2 x 3 has 3 columns, the layer has 4"},
		{nn.NewLayerNorm("ln_1", 3, nn.LayerNormConfig{}), image(3, 1, 1), "ln_1 (layer norm): input of shape 2 x 3 x 1 x 1 (nChw16c), want rows x 3"},
		{nn.NewEmbedding("wte", 4, 3), nn.Plain(2, 3), "wte (embedding): input of shape 2 x 3 and type f32, want tokens or sequences x tokens of i32"},
		{lookup(nn.NewEmbedding("wte", 4, 3), nn.Plain(2, 2), 0, 3, 1, 4), nn.Plain(1), "wte (embedding): token 1 of sequence 1 is 4, outside of 0..3"},
		{lookup(nn.NewEmbedding("wte", 4, 3), nn.Plain(2), 0, -1), nn.Plain(1), "wte (embedding): token 1 is -1, outside of 0..3"},
		{nn.NewPositions("wpe", 4, 3), nn.Plain(2, 5, 3), "wpe (positions): input of shape 2 x 5 x 3 has 5 tokens, the layer has 4 positions"},
		{nn.NewPositions("wpe", 4, 3), nn.Plain(2, 3), "wpe (positions): input of shape 2 x 3, want sequences x tokens x 3"},
		{nn.NewAttention("h.0.attn", 6, nn.AttentionConfig{Heads: 2}), nn.Plain(4, 6), "h.0.attn (attention): input of shape 4 x 18, want sequences x tokens x 3 width"},
		{nn.NewAttention("h.0.attn", 6, nn.AttentionConfig{Heads: 2}), nn.Plain(1, 4, 5),
			"h.0.attn.in_proj (linear): input of shape 1 x 4 x 5 has 5 columns, the weight of shape 18 x 6 takes 6"},
		{call(func(t *nn.Tape, x *nn.Var) { t.Attention("attn", x, 2, false) }), nn.Plain(1, 4, 9),
			"attn (attention): input of shape 1 x 4 x 9 is not cut into queries, keys and values of 2 heads"},
		{call(func(t *nn.Tape, x *nn.Var) { nn.NewAttention("attn", 6, nn.AttentionConfig{Heads: 4}) }), nn.Plain(1),
			"attn (attention): a width of 6 and 4 heads: the heads must divide the width"},
		{call(func(t *nn.Tape, x *nn.Var) { nn.NewLayerNorm("ln", 0, nn.LayerNormConfig{}) }), nn.Plain(1), "ln (layer norm): a width of 0: must be at least 1"},
		{call(func(t *nn.Tape, x *nn.Var) { nn.NewEmbedding("wte", 0, 2) }), nn.Plain(1), "wte (embedding): 0 vectors of width 2: both must be at least 1"},
		{call(func(t *nn.Tape, x *nn.Var) { nn.NewPositions("wpe", 3, 0) }), nn.Plain(1), "wpe (positions): 3 positions of width 0: both must be at least 1"},
		{call(func(t *nn.Tape, x *nn.Var) { t.SeedLoss(x, 1) }), nn.Plain(2, 3), "backward: the value of shape 2 x 3 is no loss"},
		{call(func(t *nn.Tape, x *nn.Var) { t.SeedGrad(x, device.FromF32([]float32{1})) }), nn.Plain(2, 3), "backward: a gradient of 1 elements for shape 2 x 3"},
		{call(func(t *nn.Tape, x *nn.Var) { nn.NewSeq("block", nn.ReLU{}).Forward(t, []*nn.Var{x, x}) }), nn.Plain(2, 3), "block (block): 2 inputs, want 1"},
		{call(func(t *nn.Tape, x *nn.Var) { t.Input(device.FromF32([]float32{1}), nn.Plain(3), false) }), nn.Plain(2, 3), "input: a buffer of 1 elements for shape 3"},
		{call(func(t *nn.Tape, x *nn.Var) { nn.NewLinear("bare", 3, 1, nn.LinearConfig{}).Forward(t, x) }), nn.Plain(2, 3),
			"bare.weight (use): no memory of 3 elements is bound: call Materialize first"},
		{call(func(t *nn.Tape, x *nn.Var) { nn.NewLinear("none", 0, 1, nn.LinearConfig{}) }), nn.Plain(2, 3), "none (linear): 0 inputs and 1 outputs: both must be at least 1"},
		{call(func(t *nn.Tape, x *nn.Var) { nn.NewConv2d("none", 1, 1, nn.Extent{H: 1}, nn.ConvConfig{}) }), nn.Plain(2, 3),
			"none (conv2d): 1 to 1 channels with a kernel of 1 x 0: all must be at least 1"},
		{call(func(t *nn.Tape, x *nn.Var) { nn.NewBatchNorm2d("none", 0, nn.BatchNormConfig{}) }), nn.Plain(2, 3), "none (batch norm): 0 channels: must be at least 1"},
	} {
		materialize(t, naive.New(), c.layer)
		require.EqualError(t, mistake(c.layer, c.in), c.want)
	}
}

func mistake(l nn.Layer, in nn.Shape) (err error) {
	defer nn.Catch(&err)
	tape := nn.NewTape(naive.New())
	tape.Begin(nn.Pass{Training: true})
	l.Forward(tape, tape.Input(device.FromF32(make([]float32, in.Len())), in, true))
	return nil
}

// lookup is a layer that looks up the given indices.
func lookup(l *nn.Embedding, s nn.Shape, ids ...int32) nn.Layer {
	return embedded{function{func(t *nn.Tape, _ *nn.Var) { l.Forward(t, t.Input(device.FromI32(ids), s, false)) }}, l}
}

type embedded struct {
	function
	layer *nn.Embedding
}

func (e embedded) Params() []*nn.Param { return e.layer.Params() }

// function is a layer made of a function.
type function struct{ call func(t *nn.Tape, x *nn.Var) }

func (f function) Forward(t *nn.Tape, x *nn.Var) *nn.Var {
	f.call(t, x)
	return x
}

func (f function) Params() []*nn.Param { return nil }

func (f function) State() []nn.State { return nil }

// A tape may be used again after a pass that failed half-way.
func TestTapeSurvivesAMistake(t *testing.T) {
	dev := naive.New()
	l := nn.NewLinear("fc", 2, 2, nn.LinearConfig{})
	materialize(t, dev, l)
	tape := nn.NewTape(dev)
	x := device.FromF32([]float32{1, 2})
	pass := func() (err error) {
		defer nn.Catch(&err)
		tape.Begin(nn.Pass{Training: true})
		y := l.Forward(tape, tape.Input(x, nn.Plain(1, 2), false))
		tape.Add("sum", y, tape.Input(x, nn.Plain(2, 1), false))
		return nil
	}
	require.Error(t, pass())
	peak := tape.Arena().Peak()
	for range 3 {
		require.EqualError(t, pass(), "sum (add): 1 x 2 and 2 x 1 differ in shape")
	}
	require.Equal(t, peak, tape.Arena().Peak())
}

// full is a device whose memory is used up.
type full struct{ device.Device }

var errFull = errors.New("the device is full")

func (full) Region(int) (device.Buf, error) { return device.Buf{}, errFull }

func TestMissingMemoryIsReturned(t *testing.T) {
	l := nn.NewLinear("fc", 2, 3, nn.LinearConfig{})
	materialize(t, naive.New(), l)
	tape := nn.NewTape(full{naive.New()})
	pass := func() (err error) {
		defer nn.Catch(&err)
		tape.Begin(nn.Pass{Training: true})
		l.Forward(tape, tape.Input(device.FromF32([]float32{1, 2}), nn.Plain(1, 2), false))
		return nil
	}
	err := pass()
	require.ErrorIs(t, err, errFull)
	require.EqualError(t, err, "no memory for 3 x f32: the device is full")
}

// Other panics are bugs, and go on.
func TestCatchLetsBugsThrough(t *testing.T) {
	require.PanicsWithValue(t, "bug", func() {
		var err error
		defer nn.Catch(&err)
		panic("bug")
	})
}
