package parallel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/nn"
)

// again is a layer that some micro-batches use twice.
type again struct {
	*nn.Linear
	twice func(micro int) bool
}

func (l again) Forward(t *nn.Tape, x *nn.Var) *nn.Var {
	x = l.Linear.Forward(t, x)
	if l.twice(t.Pass.Micro) {
		x = l.Linear.Forward(t, x)
	}
	return x
}

func withAgain(twice func(micro int) bool) func() []nn.Block {
	return func() []nn.Block {
		return []nn.Block{nn.NewSeq("a", again{linear("again", 16, 16), twice}), nn.NewSeq("b", linear("fc", 16, 10))}
	}
}

// A later use that only some micro-batches have counts once, also where
// gradients add up over micro-batches.
func TestUsesThatOnlySomeMicroBatchesHave(t *testing.T) {
	build := withAgain(func(micro int) bool { return micro%2 == 0 })
	_, err := stepsOf(t, 1, FusionConfig{}, build)
	require.ErrorIs(t, err, errUnused)
	want, err := stepsOf(t, 1, FusionConfig{FindUnused: true, Deterministic: true}, build)
	require.NoError(t, err)
	for _, ranks := range []int{1, 2, 3} {
		got, err := stepsOf(t, ranks, FusionConfig{FindUnused: true}, build)
		require.NoError(t, err)
		requireClose(t, want, got)
	}
}

// The first forward pass of rank 0 says how many uses there are at most.
func TestMoreUsesThanAtFirstAreRefused(t *testing.T) {
	for _, deterministic := range []bool{false, true} {
		_, err := stepsOf(t, 1, FusionConfig{FindUnused: true, Deterministic: deterministic}, withAgain(func(micro int) bool { return micro == 1 }))
		require.ErrorIs(t, err, errMoreUses)
		require.ErrorContains(t, err, "again.")
	}
}

// dropped is a layer whose first use nothing comes of.
type dropped struct{ *nn.Linear }

func (l dropped) Forward(t *nn.Tape, x *nn.Var) *nn.Var {
	l.Linear.Forward(t, x)
	return l.Linear.Forward(t, x)
}

func TestUseWithoutGradient(t *testing.T) {
	build := func(l nn.Layer) []nn.Block {
		return []nn.Block{nn.NewSeq("a", l), nn.NewSeq("b", linear("fc", 16, 10))}
	}
	for _, deterministic := range []bool{false, true} {
		cfg := FusionConfig{FindUnused: true, Deterministic: deterministic}
		want, err := stepsOf(t, 1, cfg, func() []nn.Block { return build(linear("once", 16, 16)) })
		require.NoError(t, err)
		got, err := stepsOf(t, 1, cfg, func() []nn.Block { return build(dropped{linear("once", 16, 16)}) })
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
