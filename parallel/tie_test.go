package parallel

import (
	"testing"

	"github.com/stretchr/testify/require"

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
