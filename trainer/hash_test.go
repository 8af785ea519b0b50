package trainer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/trainer"
)

// The hash of the first step's gradients is taken beside what comes after it. It
// is theirs whatever that is: the end, more steps, on several ranks too, or
// parameters frozen meanwhile, whose gradients the next step clears.
func TestHashOfTheFirstGradients(t *testing.T) {
	set := []string{"model.hidden=[300]", "train.deterministic=world", "train.micro_batch=50"}
	once, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, append(set, "train.steps=1")...)})
	require.NoError(t, err)
	cfg := small(t, append(set, "train.steps=3")...)
	for _, n := range []int{1, 2} { // the second of two ranks has no samples
		more, err := ranks(t, n, trainer.Job{Config: cfg})
		require.NoError(t, err)
		require.Equal(t, once.GradSHA256First, more.GradSHA256First, "%d ranks", n)
	}
	m, err := models.New(models.Config{Name: "mlp", Channels: 1, Height: 8, Width: 8, Classes: 10, Hidden: []int{300}})
	require.NoError(t, err)
	frozen, err := trainer.Run(t.Context(), trainer.Job{Config: cfg, Model: m, On: func(e trainer.Event) {
		if e.Kind == trainer.Stepped {
			nn.Params(m.Blocks)[0].Frozen = true
		}
	}})
	require.NoError(t, err)
	require.Equal(t, once.GradSHA256First, frozen.GradSHA256First)
}
