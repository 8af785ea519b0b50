package parallel

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// torchCase is a case of testdata/torch_ddp.json; the script beside it says what
// it holds.
type torchCase struct {
	X             []float32
	Y             []int32
	Before, After map[string][]float32
	Gradients     map[string][]float32
	Norm, Clip    float64
	LR            float32
	RunningMean   []float32 `json:"running_mean"`
	RunningVar    []float32 `json:"running_var"`
}

// ofFirst is a layer that the first micro-batch has only.
type ofFirst struct{ *nn.Linear }

func (l ofFirst) Forward(t *nn.Tape, x *nn.Var) *nn.Var {
	if t.Pass.Micro > 0 {
		return x
	}
	return nn.Tanh{}.Forward(t, l.Linear.Forward(t, x))
}

// torchLayers is the network of a case.
func torchLayers(name string) []nn.Layer {
	middle := linear("middle", 5, 5)
	layers := []nn.Layer{linear("first", 6, 5)}
	switch name {
	case "batchnorm":
		layers = append(layers, nn.NewBatchNorm2d("bn", 5, nn.BatchNormConfig{}), nn.Tanh{})
	case "tied":
		layers = append(layers, nn.Tanh{}, middle, nn.Tanh{}, middle, nn.Tanh{})
	case "unused":
		layers = append(layers, nn.Tanh{}, ofFirst{middle})
	default:
		layers = append(layers, nn.Tanh{})
	}
	return append(layers, linear("last", 5, 4))
}

// torchStep does the step of a case on one of two ranks.
func (c torchCase) step(ctx context.Context, name string, micro int, comm collective.Comm, cfg FusionConfig) (*GradFusion, []nn.Block, error) {
	cfg.Device, cfg.ClipNorm, cfg.FindUnused = naive.New(), c.Clip, name == "unused"
	blocks := []nn.Block{nn.NewSeq("net", torchLayers(name)...)}
	if err := nn.Materialize(cfg.Device, blocks, 1); err != nil {
		return nil, nil, err
	}
	for _, p := range nn.Params(blocks) {
		copy(p.Value.F32(), c.Before[p.Name])
	}
	opt, _ := optim.New(optim.Config{Name: "sgd"})
	g, err := NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: comm}}, opt, cfg)
	if err != nil {
		return nil, nil, err
	}
	tape := nn.NewTape(cfg.Device)
	for m := range g.Micros(len(c.Y), micro) {
		one := func() (err error) {
			defer nn.Catch(&err)
			tape.Begin(nn.Pass{Training: true, Micro: m.Index})
			x := tape.Input(device.FromF32(c.X[m.Lo*6:m.Hi*6]), nn.Plain(m.Samples, 6), false)
			y := nn.Forward(tape, blocks, x)
			return g.Backward(tape, tape.CrossEntropy(y[0], device.FromI32(c.Y[m.Lo:m.Hi]), nn.CrossEntropyConfig{}), m)
		}
		if m.Last {
			err = one()
		} else {
			err = g.NoSync(one)
		}
		if err != nil {
			return g, nil, g.Fail(ctx, err)
		}
	}
	return g, blocks, g.Wait(ctx)
}

// PyTorch's DDP on two processes has the same gradients within the rounding of
// float32, where both start a step with the same parameters.
func TestGradientsAreThoseOfTorchDDP(t *testing.T) {
	text, err := os.ReadFile("testdata/torch_ddp.json")
	require.NoError(t, err)
	var dump struct{ Cases map[string]torchCase }
	require.NoError(t, json.Unmarshal(text, &dump))
	// Micro-batches such that rank 0 has these samples: 6 of 12, 6 of 8, 5 of 8.
	micros := map[string]int{"accumulation": 3, "unequal": 3, "batchnorm": 5, "clipping": 3, "tied": 3, "unused": 4}
	require.Len(t, dump.Cases, len(micros))
	for name, c := range dump.Cases {
		for _, deterministic := range []bool{false, name != "batchnorm"} {
			t.Run(name, func(t *testing.T) {
				require.NoError(t, world(t.Context(), 2, func(ctx context.Context, comm collective.Comm) error {
					cfg := FusionConfig{Deterministic: deterministic, FirstMB: 1e-6, ThresholdMB: 1e-4}
					if name == "batchnorm" {
						norms, err := comm.Sub(ctx, []int{0, 1})
						if err != nil {
							return err
						}
						defer norms.Close()
						cfg.SyncBatchNorm = norms
					}
					g, blocks, err := c.step(ctx, name, micros[name], comm, cfg)
					if g != nil {
						defer g.Close()
					}
					if err != nil {
						return err
					}
					list, err := g.Gradients(ctx)
					if err != nil {
						return err
					}
					grads := map[string][]float32{}
					for _, n := range list {
						grads[n.Name] = slices.Clone(n.Buf.F32())
					}
					if err := g.Step(c.LR); err != nil || comm.Rank() != 0 {
						return err
					}
					c.compare(t, grads, blocks, g.Outcome())
					return nil
				}))
			})
		}
	}
}

func (c torchCase) compare(t *testing.T, grads map[string][]float32, blocks []nn.Block, o Outcome) {
	if c.RunningMean != nil {
		// A BatchNorm takes a constant back: this gradient is 0, but for rounding.
		require.InDeltaSlice(t, make([]float32, 5), grads["first.bias"], 1e-7)
		delete(grads, "first.bias")
		delete(c.Gradients, "first.bias")
	}
	if c.Clip == 0 { // else the dump has clipped ones
		requireNear(t, c.Gradients, grads, 2e-6)
	} else {
		require.InDelta(t, c.Norm, o.GradNorm, 1e-6*c.Norm)
		require.Greater(t, c.Norm, c.Clip)
		after := map[string][]float32{}
		for _, p := range nn.Params(blocks) {
			after[p.Name] = p.Value.F32()
		}
		requireNear(t, c.After, after, 1e-6)
	}
	for _, s := range nn.States(blocks) {
		want := map[string][]float32{"bn.running_mean": c.RunningMean, "bn.running_var": c.RunningVar}[s.Name]
		require.InDeltaSlice(t, want, s.Buf.F32(), 1e-6, s.Name) // values up to 1, rounded a few times
	}
}
