package parallel

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
)

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
	var told error // of rank 0
	err := world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		if c.Rank() == 1 {
			return nil // closes its Comm
		}
		defer nn.Catch(&told)
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
