package parallel

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// TestDriftOfACopyIsNamed changes one copy of a tied parameter behind
// GradFusion's back, on another rank and on the same one.
func TestDriftOfACopyIsNamed(t *testing.T) {
	for name, want := range map[string]string{
		"1f1b": "transformer.wte.weight on rank 1 of the stages that share it",
		"zb-v": "transformer.wte.weight of stage 3 is not what it is in stage 0",
	} {
		p := smallModels()["gpt"](8)
		p.name, p.ranks, p.micro, p.fusion.CheckEvery = name, 2, 2, 1
		p.around = func(stages []Stage, step func() error) error {
			err := step()
			if last := stages[len(stages)-1]; last.Index == len(stages)*p.ranks-1 {
				for _, q := range nn.Params(last.Blocks) {
					if q.Name == "transformer.wte.weight" {
						q.Value.F32()[3]++
					}
				}
			}
			return err
		}
		_, err := p.run(t.Context())
		require.ErrorIs(t, err, ErrDiffer)
		require.ErrorContains(t, err, want)
	}
}

// The gradient of a tied parameter is the mean over what counts too.
func TestTiesOverWhatCounts(t *testing.T) {
	base := smallModels()["gpt"](6)
	base.micro, base.fusion.Deterministic = 2, true
	all := base.batch
	base.batch = func(m Micro) Batch {
		b := all(m)
		targets := slices.Clone(b.Target.I32())
		for i := range targets {
			if (m.Lo*textContext+i)%3 == 0 {
				targets[i] = -1
			}
		}
		b.Target = device.FromI32(targets)
		return b
	}
	base.loss = func(t *nn.Tape, out []*nn.Var, b Batch) *nn.Var {
		return t.CrossEntropy(out[0], b.Target, nn.CrossEntropyConfig{Ignore: -1, HasIgnore: true})
	}
	one, err := base.run(t.Context())
	require.NoError(t, err)
	for _, columns := range []int{1, 2} {
		p := base
		p.ranks, p.columns = 2, columns
		got, err := p.run(t.Context())
		require.NoError(t, err)
		requireSame(t, one, got)
	}
}
