//go:build ascend

package hccl_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/collective/store"
)

// tellingStore tells when the first rank takes its turn.
type tellingStore struct {
	*store.Local
	once sync.Once
	set  chan struct{}
}

func (s *tellingStore) Set(ctx context.Context, key string, value []byte) error {
	if strings.Contains(key, "/turn/") {
		defer s.once.Do(func() { close(s.set) })
	}
	return s.Local.Set(ctx, key, value)
}

// TestLateJoin: a communicator that comes to be after its rank has given up is ended.
func TestLateJoin(t *testing.T) {
	w := devices(t, 2)
	meeting := &tellingStore{Local: store.NewLocal(), set: make(chan struct{})}
	of := func(rank int) hccl.Config {
		return hccl.Config{Rank: rank, Size: 2, Device: w.devices[rank], Store: meeting, Namespace: "late"}
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		var err error
		w.comms[0], err = hccl.New(ctx, of(0))
		first <- err
	}()
	second := make(chan error)
	go func() {
		var err error
		w.comms[1], err = hccl.New(t.Context(), of(1))
		second <- err
	}()
	<-meeting.set
	cancel()
	gaveUp := <-first
	require.NoError(t, <-second)
	if w.comms[0] == nil { // else it came before rank 0 looked
		require.ErrorIs(t, gaveUp, context.Canceled)
	}
}
