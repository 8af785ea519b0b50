package trainer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/amp"
	"github.com/gradfusion/gradfusion/trainer"
)

// Every level learns what float32 learns. Evaluations of this network after as
// many steps with other seeds differ by up to a tenth of their loss.
func TestPrecisionLearns(t *testing.T) {
	run := func(set ...string) (loss, held float64) {
		out, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, append(set, "train.epochs=4", "optim.name=momentum")...)})
		require.NoError(t, err)
		return *out.EvalLoss, out.ActivationsMB
	}
	want, held := run()
	for _, set := range []string{"amp.level=O1", "amp.level=O2", "amp.level=O2 amp.type=bf16 amp.keep_batchnorm_fp32=false", "amp.level=O2 amp.loss_scale=128", "amp.level=O3"} {
		got, bytes := run(strings.Fields(set)...)
		t.Logf("%s: loss %.4f, float32 %.4f", set, got, want)
		require.InDelta(t, want, got, want/10, set)
		if !strings.Contains(set, "O1") {
			require.Less(t, bytes, 0.6*held, set)
		}
	}
}

// A loss scale that no step survives is told of at every step, and ends the
// training with what overflowed.
func TestOverflowIsTold(t *testing.T) {
	var warned []string
	cfg := small(t, "amp.level=O2", "amp.loss_scale=1e36")
	_, err := trainer.Run(t.Context(), trainer.Job{Config: cfg, On: listen(trainer.Warned, &warned)})
	require.ErrorIs(t, err, trainer.ErrDiverged)
	require.ErrorIs(t, err, amp.ErrOverflow)
	require.ErrorContains(t, err, "step 25: the gradients overflow whatever the loss scale: 25 steps in a row at a loss scale of 1e+36, the last time the gradient of ")
	require.Len(t, warned, 24)
	require.Regexp(t, `^step 2 is skipped: at a loss scale of 1e\+36 the gradient of \S+ \(layer \S+, bucket \d \[.*\]\) of rank 0 overflowed; the scale stays as it is \(skipped in a row so far: 2\)$`, warned[1])
}

// A run of which no step had a loss has none at the end either.
func TestNoLossIsNull(t *testing.T) {
	set := []string{"amp.level=O3", "amp.loss_scale=1024", "optim.lr=9e5", "checkpoint.every=1 steps", "checkpoint.dir=" + t.TempDir()}
	first, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, append(set, "train.steps=1")...)})
	require.NoError(t, err)
	require.NotNil(t, first.LossLast)
	then, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, append(set, "train.steps=3")...), Resume: true})
	require.NoError(t, err)
	require.Equal(t, 3, then.Steps)
	require.Nil(t, then.LossLast)
}
