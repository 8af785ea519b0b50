package tcp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestServedWaiterPressesNobody: a waiter that sleeps is served as soon as it is
// told, before it runs again; else its reader would never leave the socket to
// those who look themselves.
func TestServedWaiterPressesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w waiters
		e := newEnding()
		one := w.add(time.Now(), e)
		go func() { <-e.c }()
		synctest.Wait()
		require.True(t, w.any())
		e.tell()
		require.False(t, w.any())
		w.remove(one)
		e.again()
		w.add(time.Now(), e)
		require.True(t, w.any())
	})
}
