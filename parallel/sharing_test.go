package parallel

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// sharing is a run of a model that partners share.
type sharing struct {
	model        models.Config
	optimizer    string
	clip         float64
	threshold    float64
	exact        bool // deterministic
	wire         string
	shard        bool
	data, tensor int
}

// shared is what came of it, alike on all ranks.
type shared struct {
	losses, norms []float64
	gradients     []Named // of the first step
	params        []Named
	state         []Named
	hash          string
}

const sharedSteps = 3

func (s sharing) run(t *testing.T) shared {
	t.Helper()
	out := make([]shared, s.data*s.tensor)
	require.NoError(t, world(t.Context(), len(out), func(ctx context.Context, c collective.Comm) (err error) {
		mesh, err := NewMesh(ctx, c, MeshConfig{Tensor: s.tensor})
		if err != nil {
			return err
		}
		out[c.Rank()], err = s.rank(ctx, mesh)
		return errors.Join(err, mesh.Close())
	}))
	for r := range out {
		require.Equal(t, out[0], out[r], "rank %d", r)
	}
	return out[0]
}

func (s sharing) rank(ctx context.Context, mesh *Mesh) (out shared, err error) {
	partners := NewPartners(ctx, mesh.Partners, s.exact)
	c := s.model
	c.Partners = partners
	m, err := models.New(c)
	if err != nil {
		return out, err
	}
	dev := naive.New()
	if err := nn.Materialize(dev, m.Blocks, 3); err != nil {
		return out, err
	}
	opt, err := optim.New(optim.Config{Name: s.optimizer, WeightDecay: 0.01})
	if err != nil {
		return out, err
	}
	g, err := NewGradFusion(ctx, []Stage{{Blocks: m.Blocks, Comm: mesh.Replicas}}, opt,
		FusionConfig{Device: dev, World: mesh.World, Deterministic: s.exact, ClipNorm: s.clip, ThresholdMB: s.threshold, FirstMB: s.threshold, Targets: max(c.Context, 1), CheckEvery: 1, Shard: s.shard, Wire: Compression{Format: s.wire}})
	if err != nil {
		return out, err
	}
	defer g.Close()
	for range sharedSteps {
		if err := s.step(ctx, g, m, dev); err != nil {
			return out, err
		}
		if out.gradients == nil {
			gradients, err := g.Gradients(ctx)
			if err != nil {
				return out, err
			}
			if out.gradients, err = partners.Whole(ctx, gradients, partIn(m)); err != nil {
				return out, err
			}
			for i := range out.gradients {
				out.gradients[i].Buf = device.FromF32(slices.Clone(out.gradients[i].Buf.F32()))
			}
		}
		if err := g.Step(0.02); err != nil {
			return out, err
		}
		if err := partners.Verify(ctx, m.Params()); err != nil {
			return out, err
		}
		out.losses, out.norms = append(out.losses, g.Outcome().Loss), append(out.norms, g.Outcome().GradNorm)
	}
	if out.params, err = partners.Whole(ctx, Params(m.Params()), partIn(m)); err != nil {
		return out, err
	}
	state, err := g.OptimizerState()
	if err != nil {
		return out, err
	}
	if out.state, err = partners.Whole(ctx, state, partIn(m)); err != nil {
		return out, err
	}
	out.hash = Hash(append(slices.Clone(out.params), out.state...))
	return out, nil
}

// partIn finds the part that a parameter of m is, or its state.
func partIn(m *models.Model) func(Named) *nn.Part {
	return func(t Named) *nn.Part {
		for _, p := range m.Params() {
			if p.Name == t.Name || strings.HasPrefix(t.Name, p.Name+"/") {
				return p.Part
			}
		}
		return nil
	}
}

// step is one of 7 samples in micro-batches of 2.
func (s sharing) step(ctx context.Context, g *GradFusion, m *models.Model, dev device.Device) error {
	tape := nn.NewTape(dev)
	for micro := range g.Micros(7, 2) {
		tape.Begin(nn.Pass{Training: true, Seed: 1, Step: g.Completed(), Micro: micro.Index})
		x, y := samplesOf(m, micro.Lo, micro.Hi)
		run := func() (err error) {
			defer nn.Catch(&err)
			out := nn.Forward(tape, m.Blocks, tape.Input(x, m.Input(micro.Samples), false))
			return g.Backward(tape, tape.CrossEntropy(out[0], y, nn.CrossEntropyConfig{}), micro)
		}
		if !micro.Last {
			whole := run
			run = func() error { return g.NoSync(whole) }
		}
		if err := run(); err != nil {
			return err
		}
	}
	return g.Wait(ctx)
}

// samplesOf makes samples [lo, hi).
func samplesOf(m *models.Model, lo, hi int) (x, y device.Buf) {
	size, targets, limit := m.Channels*m.Height*m.Width, 1, m.Classes
	if m.Context > 0 {
		size, targets, limit = m.Context, m.Context, m.Vocabulary
	}
	ids, values, labels := []int32{}, []float32{}, []int32{}
	for i := lo * size; i < hi*size; i++ {
		ids, values = append(ids, int32(i*i%limit)), append(values, float32(math.Sin(float64(i*i))))
	}
	for i := lo * targets; i < hi*targets; i++ {
		labels = append(labels, int32((i*i+i)%limit))
	}
	if m.Context > 0 {
		return device.FromI32(ids), device.FromI32(labels)
	}
	return device.FromF32(values), device.FromI32(labels)
}

func sharedModels() []models.Config {
	return []models.Config{
		{Name: "mlp", Channels: 1, Height: 3, Width: 3, Classes: 7, Hidden: []int{11, 9}, Dropout: 0.2},
		{Name: "gpt", Vocabulary: 13, Context: 5, Layers: 2, Heads: 5, Features: 15, Dropout: 0.2},
	}
}

// requireWithin compares tensors by name: within x of the rms of what is wanted.
func requireWithin(t *testing.T, want, got []Named, x float64, text string) {
	t.Helper()
	byName := map[string]Named{}
	for _, g := range got {
		byName[g.Name] = g
	}
	require.Equal(t, len(want), len(byName), text)
	for _, w := range want {
		g, ok := byName[w.Name]
		require.True(t, ok, w.Name)
		require.Equal(t, w.Shape, g.Shape, "%s %s", text, w.Name)
		difference, square := 0.0, 0.0
		for i, v := range w.Buf.F32() {
			d := float64(v) - float64(g.Buf.F32()[i])
			difference, square = difference+float64(d*d), square+float64(float64(v)*float64(v))
		}
		require.LessOrEqual(t, difference, x*x*square, "%s %s", text, w.Name)
	}
}
