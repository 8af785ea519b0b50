package nn_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
)

// The mask of a dropout depends on its name and use, not on what else is on
// the tape: a pipeline stage draws what the whole model would.
func TestSeedsSurviveACut(t *testing.T) {
	tape := nn.NewTape(naive.New())
	pass := nn.Pass{Training: true, Seed: 1, Step: 2, Micro: 3}
	tape.Begin(pass)
	a, b, again := tape.Seed("a"), tape.Seed("b"), tape.Seed("a")
	require.Len(t, map[uint64]bool{a: true, b: true, again: true}, 3)
	tape.Begin(pass)
	require.Equal(t, b, tape.Seed("b"))
	require.Equal(t, a, tape.Seed("a"))
	for _, other := range []nn.Pass{{Seed: 2, Step: 2, Micro: 3}, {Seed: 1, Step: 3, Micro: 3}, {Seed: 1, Step: 2, Micro: 4}} {
		tape.Begin(other)
		require.NotEqual(t, a, tape.Seed("a"))
	}
}

func TestDropoutIsIdentityInEvaluation(t *testing.T) {
	tape := nn.NewTape(naive.New())
	tape.Begin(nn.Pass{})
	x := tape.Input(device.FromF32(make([]float32, 4)), nn.Plain(2, 2), true)
	require.Same(t, x, tape.Dropout("d", x, 0.5))
	require.False(t, x.NeedsGrad(), "an evaluation pass has no gradients")
}

func TestDropoutKeepsTheMean(t *testing.T) {
	tape := nn.NewTape(naive.New())
	tape.Begin(nn.Pass{Training: true, Seed: 1})
	const n = 1 << 16
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	y := tape.Dropout("d", tape.Input(device.FromF32(ones), nn.Plain(1, n), false), 0.25)
	sum := 0.0
	for _, v := range y.Value.F32() {
		sum += float64(v)
	}
	require.InDelta(t, 1, sum/n, 0.012) // 5 deviations of sqrt(p/(1-p)/n) = 0.0023
}

// Gradients arrive once for each use, as soon as the operation is done, in the
// reverse order of use, with the micro-batch's index.
func TestHooksFireInReverseOrderOfUse(t *testing.T) {
	dev := naive.New()
	first := nn.NewLinear("first", 2, 2, nn.LinearConfig{})
	second := nn.NewLinear("second", 2, 2, nn.LinearConfig{})
	materialize(t, dev, first, second)
	tape := nn.NewTape(dev)
	tape.Begin(nn.Pass{Training: true, Micro: 9})
	type event struct {
		name      string
		use, leaf int
	}
	var events, uses []event
	for _, p := range append(first.Params(), second.Params()...) {
		p.OnGrad(func(p *nn.Param, use, leaf int) {
			_, written := p.Grad(use)
			require.True(t, written)
			events = append([]event{{p.Name, use, leaf}}, events...)
		})
	}
	x := tape.Input(device.FromF32([]float32{1, 2}), nn.Plain(1, 2), false)
	y := first.Forward(tape, second.Forward(tape, first.Forward(tape, x)))
	tape.SeedGrad(y, device.FromF32([]float32{1, 1}))
	tape.Backward()
	for _, u := range tape.Uses() {
		uses = append(uses, event{u.Param.Name, u.Index, 9})
	}
	require.Equal(t, uses, events)
	require.Equal(t, event{"first.bias", 1, 9}, uses[5])
	require.Equal(t, 2, first.Weight.Uses())
}

// An operation that no gradient reaches delivers nothing and leaves the rest
// alone.
func TestBranchWithoutGradient(t *testing.T) {
	for name, backward := range map[string]func(*nn.Tape){
		"whole":  (*nn.Tape).Backward,
		"halves": func(t *nn.Tape) { t.BackwardInput(); t.BackwardWeight() },
	} {
		dev := naive.New()
		used := nn.NewLinear("used", 2, 2, nn.LinearConfig{})
		conv := nn.NewConv2d("dead.conv", 1, 2, nn.Square(1), nn.ConvConfig{Bias: true})
		norm := nn.NewBatchNorm2d("dead.bn", 2, nn.BatchNormConfig{})
		dead := []nn.Layer{conv, norm, nn.ReLU{}, nn.NewMaxPool2d("dead.pool", nn.PoolConfig{Window: nn.Square(1)}),
			nn.Dropout{Name: "dead.drop", P: 0.5}, nn.GlobalAvgPool{}, nn.NewLinear("dead.fc", 2, 2, nn.LinearConfig{})}
		materialize(t, dev, append([]nn.Layer{used}, dead...)...)
		tape := nn.NewTape(dev)
		tape.Begin(nn.Pass{Training: true})
		s := nn.Plain(2, 1, 1, 2)
		x := tape.Input(device.FromF32([]float32{1, 2, 3, 4}), s, true)
		y := used.Forward(tape, tape.Flatten("", x))
		branch := x
		for _, l := range dead {
			branch = l.Forward(tape, branch)
		}
		branch = tape.Concat("cat", branch, tape.Add("sum", branch, branch))
		tape.CrossEntropy(branch, device.FromI32([]int32{0, 1}), nn.CrossEntropyConfig{})
		tape.MeanSquaredError(branch, device.FromF32(make([]float32, 8)))
		tape.SeedGrad(y, device.FromF32([]float32{1, 1, 1, 1}))
		backward(tape)
		for _, l := range dead {
			for _, p := range l.Params() {
				_, written := p.Grad(0)
				require.False(t, written, "%s: %s", name, p.Name)
			}
		}
		w := used.Weight.Value.F32()
		require.Equal(t, []float32{w[0] + w[2], w[1] + w[3], w[0] + w[2], w[1] + w[3]}, x.Grad().F32(), name)
	}
}

func TestSlotsAccumulateUntilZeroed(t *testing.T) {
	dev := naive.New()
	l := nn.NewLinear("fc", 1, 1, nn.LinearConfig{})
	materialize(t, dev, l)
	slot := device.FromF32([]float32{77})
	l.Weight.Bind(0, slot)
	tape := nn.NewTape(dev)
	step := func() {
		tape.Begin(nn.Pass{Training: true})
		y := l.Forward(tape, tape.Input(device.FromF32([]float32{3}), nn.Plain(1, 1), false))
		tape.SeedGrad(y, device.FromF32([]float32{2}))
		tape.Backward()
	}
	step()
	require.Equal(t, []float32{6}, slot.F32(), "what Bind found there does not count")
	step()
	require.Equal(t, []float32{12}, slot.F32())
	l.Weight.ZeroGrad()
	step()
	require.Equal(t, []float32{6}, slot.F32())
	require.Equal(t, []float32{6}, l.Weight.GradTensor().Data())
	require.Equal(t, l.Weight.Value.F32(), l.Weight.Tensor().Data())
}

func TestFailureBeforeUseIsReturned(t *testing.T) {
	dev := naive.New()
	l := nn.NewLinear("fc", 1, 1, nn.LinearConfig{})
	materialize(t, dev, l)
	lost := errors.New("rank 3 is gone")
	l.Weight.Before(func() error { return lost })
	err := func() (err error) {
		defer nn.Catch(&err)
		single(t, dev, nn.Pass{}, l, nn.Plain(1, 1), []float32{1})
		return nil
	}()
	require.ErrorIs(t, err, lost)
	require.EqualError(t, err, "parameter fc.weight: rank 3 is gone")
}

func TestWeightsDependOnSeedAndNameOnly(t *testing.T) {
	values := func(seed uint64, names ...string) map[string][]float32 {
		var layers []nn.Layer
		for _, n := range names {
			layers = append(layers, nn.NewLinear(n, 3, 2, nn.LinearConfig{}))
		}
		blocks := []nn.Block{nn.NewSeq("all", layers...)}
		require.NoError(t, nn.Materialize(naive.New(), blocks, seed))
		out := map[string][]float32{}
		for _, p := range nn.Params(blocks) {
			out[p.Name] = p.Value.F32()
		}
		return out
	}
	whole, stage := values(1, "a", "b", "c"), values(1, "c", "b")
	for name, v := range stage {
		require.Equal(t, whole[name], v)
	}
	require.NotEqual(t, whole["a.weight"], whole["b.weight"])
	require.NotEqual(t, whole["b.weight"], values(2, "b")["b.weight"])
	err := nn.Materialize(naive.New(), []nn.Block{nn.NewSeq("all", nn.NewLinear("a", 1, 1, nn.LinearConfig{}), nn.NewLinear("a", 1, 1, nn.LinearConfig{}))}, 1)
	require.EqualError(t, err, "two parameters are called a.weight")
}

func TestScores(t *testing.T) {
	for _, dev := range devices() {
		tape := nn.NewTape(dev)
		tape.Begin(nn.Pass{Training: true})
		logits := tape.Input(device.FromF32([]float32{0, 0, 9, 0, 0, 9, 5, 5}), nn.Plain(4, 2), true)
		loss := tape.CrossEntropy(logits, device.FromI32([]int32{1, 0, 7, 0}), nn.CrossEntropyConfig{Ignore: 7, HasIgnore: true})
		require.Equal(t, 3, loss.Score().Count)
		x := tape.Input(device.FromF32([]float32{1, 2, 3, 4}), nn.Plain(2, 2), true)
		squares := tape.MeanSquaredError(x, device.FromF32([]float32{0, 0, 0, 0}))
		tape.SeedLoss(loss, 1)
		tape.SeedLoss(squares, 0.5)
		tape.Backward()
		require.InDelta(t, 1.386418, loss.Score().Sum(), 1e-6) // log 2 + log(1+exp(-9)) + log 2, with float32 exponentials
		require.Equal(t, 2, loss.Score().Correct(), "of equal logits the first wins")
		require.Equal(t, 15.0, squares.Score().Sum(), "(1+4)/2 + (9+16)/2")
		require.Equal(t, 2, squares.Score().Count)
		require.Zero(t, squares.Score().Correct())
		require.Equal(t, []float32{0.5, 1, 1.5, 2}, x.Grad().F32())
	}
}
