package store

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocal(t *testing.T) {
	l := NewLocal()
	got := make(chan [][]byte)
	go func() {
		values, _ := l.Wait(t.Context(), "a", "b", "a")
		got <- values
	}()
	value := []byte("1")
	require.NoError(t, l.Set(t.Context(), "a", value))
	value[0] = '9'
	require.NoError(t, l.Set(t.Context(), "b", []byte("2")))
	require.Equal(t, [][]byte{[]byte("1"), []byte("2"), []byte("1")}, <-got)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Wait(ended, "a", "c")
	var wait *WaitError
	require.ErrorAs(t, err, &wait)
	require.Equal(t, []string{"c"}, wait.Missing)
	require.ErrorIs(t, err, context.Canceled)
	values, err := l.Wait(ended, "a")
	require.NoError(t, err, "what is there needs no waiting")
	require.Equal(t, [][]byte{[]byte("1")}, values)
	require.NoError(t, l.Will(t.Context(), "a", nil))
	require.Nil(t, l.Done())
}
