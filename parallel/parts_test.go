package parallel

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// Parameters whose names differ behind a space, or a line's end, are two.
func TestPartsOfAnyName(t *testing.T) {
	require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		var segments []optim.Segment
		for _, name := range []string{"a b", "a c", "a\nd", ""} {
			segments = append(segments, optim.Segment{Param: &nn.Param{Name: name, Shape: []int{200}}, Hi: 200})
		}
		p, err := newParts(ctx, c, segments, []int{0, 0, 0, 0})
		if err != nil {
			return err
		}
		require.Equal(t, 4, p.params)
		require.Equal(t, []int{2, 3, 1, 0}, p.paramOf, "in the order of the names")
		return nil
	}))
}
