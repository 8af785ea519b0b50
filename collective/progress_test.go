package collective_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
)

// TestBeganWhateverTheClockSays: how long a call runs does not change with the clock on
// the wall, which somebody may set. Only a time that the runtime's other clock is part
// of prints it.
func TestBeganWhateverTheClockSays(t *testing.T) {
	groups := pacedGroups(t, alone(1), collective.GroupConfig{})
	require.True(t, groups[0].Progress().Began.IsZero())
	require.NoError(t, collective.Barrier(t.Context(), groups[0]))
	require.Contains(t, groups[0].Progress().Began.String(), " m=")
}
