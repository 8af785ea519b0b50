package collective_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
)

// TestAgreeOnPacking: all ranks learn at once of one that is set to something else.
func TestAgreeOnPacking(t *testing.T) {
	for want, settings := range map[string][]string{
		"": {"auto", "auto", "auto"},
		"collective.pack is auto on rank 0 and true on rank 2; it has to be the same on all ranks":  {"auto", "auto", "true"},
		"collective.pack is false on rank 0 and auto on rank 1; it has to be the same on all ranks": {"false", "auto", "true"},
	} {
		errs := make([]error, len(settings))
		var all sync.WaitGroup
		for r, transport := range inproc.NewOn(alone(len(settings))) {
			all.Go(func() { errs[r] = collective.AgreeOnPacking(t.Context(), transport, settings[r]) })
			t.Cleanup(func() { require.NoError(t, transport.Close()) })
		}
		all.Wait()
		for _, err := range errs {
			if want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, want)
			}
		}
	}
}
