package launch

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAllThreadsAreBound(t *testing.T) {
	all, err := processors()
	require.NoError(t, err)
	var whole []int
	for _, p := range all {
		whole = append(whole, p.number)
	}
	defer func() { require.NoError(t, bind(whole)) }()
	n, err := KeepApart(Place{LocalRank: len(all) - 1, LocalSize: len(all)}, 1)
	require.NoError(t, err)
	require.Equal(t, 1, n)

	var want unix.CPUSet
	for _, number := range share(all, len(all)-1, len(all)) {
		want.Set(number)
	}
	var started sync.WaitGroup // threads that come later inherit
	for range 4 {
		started.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var has unix.CPUSet
			if unix.SchedGetaffinity(0, &has) != nil || has != want {
				t.Errorf("a thread may use %d processors", has.Count())
			}
		})
	}
	started.Wait()
	threads, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		require.NoError(t, err)
		var has unix.CPUSet
		if unix.SchedGetaffinity(id, &has) == nil { // else it has ended
			require.Equal(t, want, has, "thread %d", id)
		}
	}
}

func TestOneThreadIsBound(t *testing.T) {
	all, err := processors()
	require.NoError(t, err)
	done := make(chan error)
	var has, other unix.CPUSet
	go func() { // which ends with its thread
		err := KeepThreadApart(Place{LocalRank: 0, LocalSize: len(all)})
		if err == nil {
			err = unix.SchedGetaffinity(0, &has)
		}
		done <- err
	}()
	require.NoError(t, <-done)
	go func() {
		runtime.LockOSThread()
		done <- unix.SchedGetaffinity(0, &other)
	}()
	require.NoError(t, <-done)
	require.Equal(t, setOf(share(all, 0, len(all))), has)
	require.Equal(t, len(all), other.Count(), "threads that come later are free")
	var few *TooFewError
	require.ErrorAs(t, KeepThreadApart(Place{LocalSize: len(all) + 1}), &few)
}
