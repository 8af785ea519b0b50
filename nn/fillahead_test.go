package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
)

// Parameters that are filled beside a forward pass, in whichever order that uses
// them, have the values of Materialize, and so do those that it does not use.
func TestFillAhead(t *testing.T) {
	for _, make := range []func() network{images, tokens} {
		want, got := make(), make()
		require.NoError(t, nn.Materialize(naive.New(), want.blocks, 3))
		for _, used := range []func(p []*nn.Param) []*nn.Param{
			func(p []*nn.Param) []*nn.Param { return p },
			func(p []*nn.Param) []*nn.Param { return p[len(p)/2:] },
			func([]*nn.Param) []*nn.Param { return nil },
		} {
			require.NoError(t, nn.Allocate(naive.New(), got.blocks))
			f := nn.FillAhead(got.blocks, 3)
			tape := nn.NewTape(naive.New())
			tape.Begin(nn.Pass{})
			for _, p := range used(nn.Params(got.blocks)) {
				p.Use(tape)
				p.Use(tape)
			}
			f.Wait()
			f.Wait()
			for i, p := range nn.Params(want.blocks) {
				require.Equal(t, p.Value.F32(), nn.Params(got.blocks)[i].Value.F32(), p.Name)
			}
		}
	}
	var none *nn.Filling
	none.Wait()
}
