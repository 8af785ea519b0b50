package trainer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// prepared is a session as it is before its parameters get memory.
func prepared(t *testing.T, set ...string) *session {
	t.Helper()
	cfg, err := config.Load("", config.Sources{Set: append([]string{"data.name=digits", "data.batch=100", "compute.threads=1"}, set...)})
	require.NoError(t, err)
	s := &session{cfg: cfg, comm: alone()}
	t.Cleanup(func() { require.NoError(t, s.comm.Close()) })
	s.parts, err = Job{Config: cfg, Device: naive.New()}.parts()
	require.NoError(t, err)
	require.NoError(t, s.cut())
	require.NoError(t, s.place(t.Context()))
	require.NoError(t, s.build())
	require.NoError(t, s.divide(t.Context()))
	return s
}

func TestActivationsOfASample(t *testing.T) {
	for _, c := range []struct {
		name string
		set  []string
		want float64
	}{
		// The hidden layer, over which ReLU writes, and the head.
		{"mlp", []string{"model.name=mlp", "model.hidden=[16]"}, 4 * (16 + 10)},
		// Block by block the output, and the inside of the largest.
		{"recomputed", []string{"model.name=mlp", "model.hidden=[16]", "model.recompute=blocks", "model.dropout=0.5"}, 4 * (16 + 10)},
		// 8 x 8 pixels: conv1 and conv2, the pool with the places of its
		// maxima, the pool as rows, two linear layers.
		{"cnn", []string{"model.name=cnn", "model.hidden=[8]"}, 4 * (32*6*6 + 64*4*4 + 2*64*2*2 + 64*2*2 + 8 + 10)},
		// The inside of conv2 is its output and the places of the maxima.
		{"cnn, recomputed", []string{"model.name=cnn", "model.hidden=[8]", "model.recompute=blocks"},
			4 * (32*6*6 + 64*4*4 + 2*64*2*2 + 8 + 10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := prepared(t, c.set...)
			require.NoError(t, nn.Materialize(s.device, s.model.Blocks, 1))
			got, _, err := s.activations()
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// The probe must not be seen in what is trained afterwards.
func TestActivationsLeaveTheModelAlone(t *testing.T) {
	s := prepared(t, "model.name=resnet20")
	require.NoError(t, nn.Materialize(s.device, s.model.Blocks, 1))
	got, _, err := s.activations()
	require.NoError(t, err)
	require.Positive(t, got)
	for _, state := range nn.States(s.model.Blocks) {
		require.Empty(t, state.Running.Emitted())
		require.Zero(t, state.Running.Singles)
		for _, v := range state.Running.Mean.F32() {
			require.Zero(t, v)
		}
	}
}

func TestMemoryThatIsMissing(t *testing.T) {
	s := prepared(t, "model.name=mlp", "model.hidden=[16]", "data.workers=2")
	const weights = 2 * 4 * (64*16 + 16 + 16*10 + 10)
	const pixels = 4 * 4 * 64 * 100 // two workers: three micro-batches ahead, one in use
	const activations = 1000
	require.NoError(t, s.fitsMemory(0, 1e30), "memory that is not known")
	require.NoError(t, s.fitsMemory(weights+pixels, 0))
	require.NoError(t, s.fitsMemory(weights+pixels+100*activations, activations))

	for have, activations := range map[float64]float64{weights + pixels - 1: 0, weights + pixels + 100*activations - 1: activations} {
		err := s.fitsMemory(have, activations)
		require.ErrorAs(t, err, new(*config.Error))
		require.ErrorContains(t, err, "micro-batches of 100 samples take at least")
	}
	s = prepared(t, "model.name=mlp", "model.hidden=[4096]")
	require.ErrorContains(t, s.fitsMemory(1<<20, 0), "parameters; weights and gradients of the ranks on this host take 2.34 MiB, and there are 1 MiB")
}
