package models_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

// cutConfigs have sizes that 2, 3 and 4 do not divide.
func cutConfigs() map[string]models.Config {
	image := config("mlp", 1, 7, 5)
	with := func(dropout float32, hidden ...int) models.Config {
		c := image
		c.Hidden, c.Dropout = hidden, dropout
		return c
	}
	gpt := models.Config{Name: "gpt", Vocabulary: 23, Context: 7, Layers: 2, Heads: 5, Features: 35}
	dropped := gpt
	dropped.Dropout = 0.3
	return map[string]models.Config{
		"mlp of three layers":   with(0, 13, 11),
		"mlp of four layers":    with(0, 13, 11, 9),
		"mlp of two layers":     with(0, 17),
		"mlp of one layer":      with(0, []int{}...),
		"mlp with dropout":      with(0.4, 13, 11, 9, 10),
		"gpt":                   gpt,
		"gpt with dropout":      dropped,
		"gpt of as many heads":  {Name: "gpt", Vocabulary: 9, Context: 5, Layers: 1, Heads: 4, Features: 12},
		"gpt of a wide context": {Name: "gpt", Vocabulary: 70, Context: 33, Layers: 1, Heads: 4, Features: 16},
	}
}

// step runs two micro-batches and adds what came of them.
func step(c models.Config, dev device.Device, p nn.Partners, pass nn.Pass, split bool, to *nntest.Wholes) (err error) {
	defer nn.Catch(&err)
	c.Partners = p
	m, err := models.New(c)
	if err != nil {
		return err
	}
	if err := nn.Materialize(dev, m.Blocks, 5); err != nil {
		return err
	}
	for _, w := range m.Params() {
		to.Add(w.Name, w.Part, w.Value.F32())
	}
	tape := nn.NewTape(dev)
	for micro, n := range []int{3, 2} {
		pass.Training, pass.Seed, pass.Micro = true, 7, micro
		tape.Begin(pass)
		x, y := values(m, n)
		loss := tape.CrossEntropy(nn.Forward(tape, m.Blocks, tape.Input(x, m.Input(n), false))[0], y, nn.CrossEntropyConfig{Smoothing: 0.1, Ignore: 1, HasIgnore: true})
		tape.SeedLoss(loss, 0.25)
		if split {
			tape.BackwardInput()
			tape.BackwardWeight()
		} else {
			tape.Backward()
		}
		s := loss.Score()
		to.Add(fmt.Sprint("score ", micro), nil, []float32{float32(s.Sum()), float32(s.Correct()), float32(s.Count)})
	}
	for _, w := range m.Params() {
		for use := range w.Uses() {
			g, ok := w.Grad(use)
			if !ok {
				return fmt.Errorf("%s has no gradient", w.Name)
			}
			to.Add(fmt.Sprintf("gradient of use %d of %s", use, w.Name), w.Part, g.F32())
		}
	}
	return nil
}

// values makes n samples; the labels take all values.
func values(m *models.Model, n int) (x, y device.Buf) {
	in := m.Input(n)
	if m.Context > 0 {
		return labels(in.Len(), m.Vocabulary), labels(in.Len()+1, m.Vocabulary).Slice(1, in.Len()+1)
	}
	x = device.FromF32(make([]float32, in.Len()))
	nn.Init{Kind: nn.Normal, Scale: 1}.Fill(x.F32(), 1, "x")
	return x, labels(n, m.Classes)
}

// A model whose layers are cut over partners has the parameters, losses and
// gradients of the whole one. Sums are added up in another order, which moves
// a gradient by some 1e-6 of its rms.
func TestPartnersComputeWhatTheWholeModelDoes(t *testing.T) {
	for name, c := range cutConfigs() {
		for _, dev := range []func() device.Device{naiveDevice, cpuDevice} {
			var want nntest.Wholes
			require.NoError(t, step(c, dev(), nil, nn.Pass{}, false, &want))
			for n := 2; n <= 4; n++ {
				for _, way := range []string{"", "split", "recompute"} {
					var got nntest.Wholes
					require.NoError(t, nntest.Together(n, func(p nn.Partners) error {
						return step(c, dev(), p, nn.Pass{Recompute: way == "recompute"}, way == "split", &got)
					}), "%s over %d", name, n)
					require.NoError(t, got.Compare(&want, 1e-5), "%s over %d %s", name, n, way)
				}
			}
		}
	}
}

// With 16 bits they do so but for roundings: what partners sum is rounded once, as
// the whole is, and may go the other way. As in nn's TestGradientsInSixteenBits, 16
// units in the last place hold some twenty of them; in mlp they also send a share of
// a unit of all elements through the other side of a ReLU.
func TestPartnersInSixteenBits(t *testing.T) {
	for _, p := range []nn.Precision{{Type: device.F16}, {Type: device.BF16, Norms: true}, {Type: device.F16, Products: true}} {
		unit := math.Ldexp(1, -11)
		if p.Type == device.BF16 {
			unit = math.Ldexp(1, -8)
		}
		for name, bound := range map[string]float64{"gpt with dropout": 16 * unit, "mlp with dropout": 2 * math.Sqrt(unit)} {
			for _, dev := range []func() device.Device{naiveDevice, cpuDevice} {
				var want nntest.Wholes
				require.NoError(t, step(cutConfigs()[name], dev(), nil, nn.Pass{Precision: p}, false, &want))
				for n := 2; n <= 3; n++ {
					for _, split := range []bool{false, true} {
						var got nntest.Wholes
						require.NoError(t, nntest.Together(n, func(partner nn.Partners) error {
							return step(cutConfigs()[name], dev(), partner, nn.Pass{Precision: p}, split, &got)
						}), "%s over %d at %+v", name, n, p)
						require.NoError(t, got.Compare(&want, bound), "%s over %d at %+v", name, n, p)
					}
				}
			}
		}
	}
}

func naiveDevice() device.Device { return naive.New() }

func cpuDevice() device.Device {
	d, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		panic(err)
	}
	return d
}
