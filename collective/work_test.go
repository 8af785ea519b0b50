package collective_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
)

func TestWorkOfAHook(t *testing.T) {
	work, complete := collective.NewWork()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, work.Wait(cancelled), context.Canceled)
	require.NoError(t, work.Err())
	done := work.Done()
	select {
	case <-done:
		require.Fail(t, "done before it is complete")
	default:
	}
	failure := errors.New("failure")
	complete(failure)
	<-done
	<-work.Done()
	require.Equal(t, failure, work.Err())
	require.Equal(t, failure, work.Wait(context.Background()))
	require.Equal(t, failure, work.Wait(cancelled), "what has ended has ended")
}
