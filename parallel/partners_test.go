package parallel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
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

// Partners and columns train as one rank does: the first gradients are within
// 1e-5 of each tensor's rms (a sum in another order moves them by some 1e-6),
// losses and norms likewise, and all ranks end with the same parameters. A
// second step may differ by more: an update by Adam of an element that has
// almost no gradient has its sign.
func TestPartnersTrainAsOneRankDoes(t *testing.T) {
	for _, m := range sharedModels() {
		for i, optimizer := range []string{"momentum", "adamw", "lamb", "lars"} {
			s := sharing{model: m, optimizer: optimizer, clip: 0.5 * float64(i%2), threshold: []float64{16, 0.0005}[i/2], data: 1, tensor: 1}
			want := s.run(t)
			for _, grid := range [][2]int{{1, 2}, {1, 3}, {1, 5}, {2, 2}, {3, 2}, {2, 3}} {
				s.data, s.tensor = grid[0], grid[1]
				text := fmt.Sprintf("%s, %s, data %d x tensor %d", m.Name, optimizer, s.data, s.tensor)
				got := s.run(t)
				requireWithin(t, want.gradients, got.gradients, 1e-5, text)
				requireWithin(t, want.params, got.params, 1e-3, text)
				require.Len(t, got.state, len(want.state))
				require.InEpsilonSlice(t, want.losses, got.losses, 1e-5, text)
				require.InEpsilon(t, 1+want.norms[0], 1+got.norms[0], 1e-5, text)
			}
		}
	}
}

// What partners hold alike stays so, in whatever order and form columns add up.
func TestPartnersStayAlike(t *testing.T) {
	for _, m := range sharedModels() {
		for _, s := range []sharing{{wire: "f16"}, {wire: "bf16", shard: true}, {shard: true, threshold: 0.001}} {
			s.model, s.optimizer, s.data, s.tensor = m, "adamw", 3, 2
			s.run(t)
		}
	}
}

// A parameter that only one partner changes is named.
func TestVerifyNamesWhatDiffers(t *testing.T) {
	err := world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		p := NewPartners(ctx, c, false)
		config := sharedModels()[1]
		config.Partners = p
		m, err := models.New(config)
		if err != nil {
			return err
		}
		if err := nn.Materialize(naive.New(), m.Blocks, 1); err != nil {
			return err
		}
		if err := p.Verify(ctx, m.Params()); err != nil {
			return err
		}
		for _, w := range m.Params() {
			if c.Rank() == 1 && w.Name == "transformer.h.1.ln_2.bias" {
				w.Value.F32()[3] = 1
			}
		}
		return p.Verify(ctx, m.Params())
	})
	require.ErrorIs(t, err, ErrDiffer)
	require.ErrorContains(t, err, "rank 1 has another transformer.h.1.ln_2.bias than rank 0")
}

// Deterministic partners have the same bits whatever else the layout is.
func TestDeterministicPartners(t *testing.T) {
	for _, m := range sharedModels() {
		for tensor := 2; tensor <= 4; tensor++ {
			s := sharing{model: m, optimizer: "adamw", clip: 0.5, threshold: 16, exact: true, data: 1, tensor: tensor}
			want := s.run(t)
			for data := 2; data <= 3; data++ {
				s.data, s.threshold = data, 0.001
				require.Equal(t, want, s.run(t), "%s, data %d x tensor %d", m.Name, data, tensor)
			}
		}
	}
}

// A rank that leaves in the middle of a step is named, with the layer, by its
// partner.
func TestPartnerThatLeaves(t *testing.T) {
	var mu sync.Mutex
	var told error
	err := world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		if c.Rank() == 1 {
			return nil // closes its Comm
		}
		defer nn.Catch(&told)
		mu.Lock()
		defer mu.Unlock()
		config := sharedModels()[1]
		config.Partners = NewPartners(ctx, c, false)
		m, err := models.New(config)
		if err != nil {
			return err
		}
		if err := nn.Materialize(naive.New(), m.Blocks, 1); err != nil {
			return err
		}
		tape := nn.NewTape(naive.New())
		tape.Begin(nn.Pass{Training: true})
		x, _ := samplesOf(m, 0, 2)
		nn.Forward(tape, m.Blocks, tape.Input(x, m.Input(2), false))
		return errors.New("it went through")
	})
	require.NoError(t, err)
	require.ErrorContains(t, told, "transformer.wte (sum of the partners' vectors)")
	var peer *collective.PeerError
	require.ErrorAs(t, told, &peer)
	require.Equal(t, 1, peer.Peer)
}
