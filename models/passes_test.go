package models_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

func devices(t *testing.T) []device.Device {
	d, err := cpu.New(cpu.Config{})
	require.NoError(t, err)
	return []device.Device{naive.New(), d}
}

// whole is a model with its loss as a case.
func whole(t *testing.T, c models.Config) nntest.Case {
	m, err := models.New(c)
	require.NoError(t, err)
	out := nntest.Case{Blocks: m.Blocks, Random: c.Dropout > 0}
	x, y := samples(t, naive.New(), m, 3)
	if m.Context == 0 {
		out.Inputs = []nn.Shape{m.Input(3)}
	}
	out.Apply = func(t *nn.Tape, in []*nn.Var) *nn.Var {
		if m.Context > 0 {
			in = []*nn.Var{t.Input(x, m.Input(3), false)} // tokens have no gradient
		}
		return t.CrossEntropy(nn.Forward(t, m.Blocks, in...)[0], y, nn.CrossEntropyConfig{})
	}
	return out
}

// A whole network: the halves of the backward pass give the bits of the whole,
// nothing reads memory that was given back, further passes allocate no buffer,
// and freezing the parameters leaves the input's gradient alone.
func TestPassesOfWholeModels(t *testing.T) {
	for _, dev := range devices(t) {
		for _, name := range []string{"mlp", "cnn", "resnet20", "resnet18", "resnet50", "gpt"} {
			for _, c := range variants(small(name, 8)) {
				nntest.CheckSplit(t, dev, whole(t, c))
				nntest.CheckReuse(t, dev, whole(t, c))
				nntest.CheckFrozen(t, dev, whole(t, c))
				nntest.CheckRecompute(t, dev, whole(t, c))
			}
		}
	}
}

// A steady step allocates nothing, in either form of the backward pass.
func TestSteadyPassAllocatesNothing(t *testing.T) {
	dev, err := cpu.New(cpu.Config{})
	require.NoError(t, err)
	for _, name := range []string{"resnet20", "resnet50", "cnn", "mlp", "gpt"} {
		c := small(name, 8)
		c.Dropout = 0.1
		m, err := models.New(c)
		require.NoError(t, err)
		require.NoError(t, nn.Materialize(dev, m.Blocks, 1))
		x, labels := samples(t, dev, m, 4)
		tape := nn.NewTape(dev)
		states := nn.States(m.Blocks)
		step := func() {
			for _, half := range []bool{false, true} {
				tape.Begin(nn.Pass{Training: true})
				out := nn.Forward(tape, m.Blocks, tape.Input(x, m.Input(4), false))
				loss := tape.CrossEntropy(out[0], labels, nn.CrossEntropyConfig{})
				tape.SeedLoss(loss, 0.25)
				if half {
					tape.BackwardInput()
					tape.BackwardWeight()
				} else {
					tape.Backward()
				}
				for _, s := range states {
					s.Running.Update(nil)
				}
			}
		}
		step()
		require.Zero(t, testing.AllocsPerRun(5, step), name)
	}
}

// Evaluation frees as it goes, keeps nothing that it needs, and repeats to the
// bit.
func TestEvaluationFreesAsItGoes(t *testing.T) {
	for _, dev := range devices(t) {
		for _, name := range []string{"mlp", "cnn", "resnet20", "resnet50", "gpt"} {
			m, err := models.New(small(name, 8))
			require.NoError(t, err)
			require.NoError(t, nn.Materialize(dev, m.Blocks, 1))
			in := m.Input(2)
			x, _ := samples(t, dev, m, 2)
			logits := func(tape *nn.Tape) []float32 {
				tape.Begin(nn.Pass{})
				out := nn.Forward(tape, m.Blocks, tape.Input(x, in, false))[0]
				return append([]float32(nil), out.Value.F32()...)
			}
			plain, block := nn.NewTape(dev), nn.NewTape(dev)
			plain.Begin(nn.Pass{})
			vars := []*nn.Var{plain.Input(x, in, false)}
			for _, b := range m.Blocks { // without Forward nothing is freed
				vars = b.Forward(plain, vars)
			}
			nntest.Poison(block)
			for range 3 {
				require.Equal(t, vars[0].Value.F32(), logits(block), name)
			}
			require.LessOrEqual(t, block.Arena().Peak(), plain.Arena().Peak(), name)
			if name != "mlp" { // whose two layers are both needed at once
				require.Less(t, block.Arena().Peak(), plain.Arena().Peak(), name)
			}
			if dev.Name() == naive.New().Name() && m.Context > 0 {
				continue // whose attention allocates
			}
			require.Zero(t, testing.AllocsPerRun(3, func() {
				block.Begin(nn.Pass{})
				nn.Forward(block, m.Blocks, block.Input(x, in, false))
			}))
		}
	}
}
