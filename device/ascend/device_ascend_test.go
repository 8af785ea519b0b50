//go:build ascend

package ascend

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func TestMissingLibraryNamesWhatWasTried(t *testing.T) {
	_, err := Load(Config{Dir: "/no/such/directory"})
	require.ErrorContains(t, err, "tried /no/such/directory/libascendcl.so (")
	require.ErrorContains(t, err, "/no/such/directory/libacl_rt.so (")
	require.ErrorContains(t, err, "cannot open shared object file")
	require.ErrorContains(t, err, "set_env.sh")
}

func TestSearchOrder(t *testing.T) {
	env := map[string]string{"ASCEND_HOME_PATH": "/home", "ASCEND_TOOLKIT_HOME": "/toolkit"}
	require.Equal(t, []string{
		"/home/lib64/libhccl.so", "/toolkit/lib64/libhccl.so", "libhccl.so",
		"/usr/local/Ascend/ascend-toolkit/latest/lib64/libhccl.so", "/usr/local/Ascend/cann/lib64/libhccl.so",
	}, Config{Getenv: func(k string) string { return env[k] }}.Candidates("libhccl.so"))
}

// TestRuntimeMoved: newer releases have the runtime in libacl_rt.so alone.
func TestRuntimeMoved(t *testing.T) {
	libraries := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(os.Getenv(ascendsim.LibrariesVariable), "libascendcl.so"), filepath.Join(libraries, "libacl_rt.so")))
	again(t, libraries, "^TestCopies$")
}

func TestLayouts(t *testing.T) {
	for _, layout := range []ascendsim.Layout{ascendsim.CANN9, ascendsim.Old} {
		libraries, err := ascendsim.Build(t.TempDir(), layout, "")
		require.NoError(t, err)
		again(t, libraries, "^(TestCopies|TestEvents|TestVersion)$", "ASCENDSIM_CHIP=910A")
	}
}

func TestVersion(t *testing.T) {
	d := open(t, 0)
	require.NotEmpty(t, d.Library().Version())
	require.Contains(t, d.Library().Chip(), "Ascend910")
	n, err := d.Library().Devices()
	require.NoError(t, err)
	require.Equal(t, 8, n)
	free, total, err := d.MemoryInfo()
	require.NoError(t, err)
	require.True(t, free > 0 && free <= total)
}

func TestInitialisedTwice(t *testing.T) {
	open(t, 0)
	second, err := Load(Config{Dir: os.Getenv(ascendsim.LibrariesVariable)})
	require.NoError(t, err, "the runtime's code for that is no failure")
	_ = second
}

func TestMissingDevice(t *testing.T) {
	d := open(t, 0)
	_, err := d.Library().Open(8)
	require.EqualError(t, err, "device 8 is missing: this process sees devices 0 to 7")
}

func TestBusyAndUnhealthyDevices(t *testing.T) {
	again(t, "", "^TestRefusedDevices$", "ASCENDSIM_BUSY=1", "ASCENDSIM_UNHEALTHY=2", "ASCEND_TEST_REFUSED=1")
}

func TestRefusedDevices(t *testing.T) {
	d := open(t, 0)
	if os.Getenv("ASCEND_TEST_REFUSED") == "" {
		return // TestBusyAndUnhealthyDevices runs it
	}
	for _, index := range []int{1, 2} {
		_, err := d.Library().Open(index)
		require.ErrorContains(t, err, "busy with another process or not healthy")
		var call *CallError
		require.True(t, errors.As(err, &call), "%v", err)
	}
}

func TestCopies(t *testing.T) {
	d := open(t, 3)
	b, err := d.AllocPinned(device.F32, 1000)
	require.NoError(t, err)
	require.True(t, d.IsPinned(b.Bytes()))
	require.True(t, d.IsPinned(b.Slice(10, 20).Bytes()))
	require.False(t, d.IsPinned(make([]byte, 10)))
	back, err := d.AllocPinned(device.F32, 1000)
	require.NoError(t, err)
	for i := range b.F32() {
		require.Zero(t, b.F32()[i])
		b.F32()[i] = float32(i)
	}
	require.NoError(t, d.Thread().Do(func() error {
		m, err := d.Malloc(4000)
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		require.Zero(t, m.At%64)
		require.NoError(t, d.CopyAsync(m.At, address(b.Bytes()), 4000, HostToDevice, s))
		require.NoError(t, d.CopyAsync(address(back.Bytes()), m.At, 4000, DeviceToHost, s))
		require.NoError(t, d.SyncStream(s, time.Minute))
		idle, err := d.StreamIdle(s)
		require.NoError(t, err)
		require.True(t, idle)
		return errors.Join(d.DestroyStream(s, false), d.Free(m))
	}))
	require.Equal(t, b.F32(), back.F32())
}

// TestBuffers: the device's memory as a Buf.
func TestBuffers(t *testing.T) {
	d := open(t, 0)
	b, err := d.Alloc(device.F32, 4)
	require.NoError(t, err)
	require.Nil(t, b.Bytes(), "the host cannot read it")
	require.True(t, d.Owns(b.Slice(1, 4)))
	require.False(t, d.Owns(device.Buf{Type: device.F32, Len: 8, Handle: b.Handle}), "longer than it is")
	other, err := d.Alloc(device.F32, 4)
	require.NoError(t, err)
	got := make([]float32, 2)
	require.NoError(t, d.Move(b, device.FromF32([]float32{1, 2, 3, 4})))
	require.NoError(t, d.Move(other, b))
	require.NoError(t, d.Move(device.FromF32(got), other.Slice(1, 3)))
	require.Equal(t, []float32{2, 3}, got)
	require.ErrorContains(t, d.Move(b, device.FromF32(got)), "a copy of 8 bytes to 16")
	require.ErrorContains(t, d.Move(device.FromF32(got), device.FromF32(got)), "none of its")
	require.NoError(t, d.Release(b))
	require.ErrorContains(t, d.Release(b), "was released")
	none, err := d.Alloc(device.F32, 0)
	require.NoError(t, err)
	require.NoError(t, d.Release(none))
}

// TestEvents: an event of one stream holds another one.
func TestEvents(t *testing.T) {
	d := open(t, 0)
	require.NoError(t, d.Thread().Do(func() error {
		first, err := d.NewStream()
		require.NoError(t, err)
		second, err := d.NewStream()
		require.NoError(t, err)
		a, err := d.NewTimer()
		require.NoError(t, err)
		b, err := d.NewTimer()
		require.NoError(t, err)
		for range 3 { // they are recorded again
			require.NoError(t, d.RecordEvent(a, first))
			require.NoError(t, d.WaitEvent(second, a))
			require.NoError(t, d.RecordEvent(b, second))
			require.NoError(t, d.SyncEvent(b, time.Minute))
			passed, err := d.EventPassed(a)
			require.NoError(t, err)
			require.True(t, passed)
		}
		took, err := d.Elapsed(a, b)
		require.NoError(t, err)
		require.GreaterOrEqual(t, took, time.Duration(0))
		return errors.Join(d.DestroyStream(first, false), d.DestroyStream(second, false), d.DestroyEvent(a), d.DestroyEvent(b))
	}))
}

// TestMilliseconds: the runtime takes time-outs in these.
func TestMilliseconds(t *testing.T) {
	d := open(t, 0)
	simulator, err := d.Library().LoadOther("libascendcl.so")
	require.NoError(t, err)
	held := int32(1)
	var stream, event error
	require.NoError(t, d.Thread().Do(func() error {
		s, err := d.NewStream()
		if err != nil {
			return err
		}
		e, err := d.NewTimer()
		if err != nil {
			return err
		}
		Call(simulator.Symbol("ascendsim_hold"), uintptr(s), uintptr(unsafe.Pointer(&held)))
		err = d.RecordEvent(e, s)
		stream, event = d.SyncStream(s, 1500*time.Microsecond), d.SyncEvent(e, 2*time.Millisecond)
		passed, failed := d.EventPassed(e)
		idle, too := d.StreamIdle(s)
		require.False(t, passed || idle, "while the stream is held")
		err = errors.Join(err, failed, too)
		atomic.StoreInt32(&held, 0)
		return errors.Join(err, d.SyncStream(s, time.Hour), d.DestroyStream(s, false), d.DestroyEvent(e))
	}))
	require.True(t, isCode(stream, StreamTimeout), "%v", stream)
	require.ErrorContains(t, stream, "after 1 ms")
	require.True(t, isCode(event, EventTimeout), "%v", event)
	require.ErrorContains(t, event, "after 2 ms")
}

// TestThreadWithoutContext is trap 5: the runtime refuses a thread that has none,
// as a goroutine has that does not use a Thread.
func TestThreadWithoutContext(t *testing.T) {
	d := open(t, 0)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, err := d.NewStream()
	var call *CallError
	require.ErrorAs(t, err, &call)
	require.Equal(t, int32(ContextNull), call.Code)

	other, err := d.NewThread()
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Do(func() error {
		s, err := d.NewStream()
		require.NoError(t, err)
		return d.DestroyStream(s, false)
	}))
}

// TestErrorText: the text of a failure is taken on its own thread.
func TestErrorText(t *testing.T) {
	d := open(t, 0)
	err := d.Thread().Do(func() error { return d.Free(Memory{At: 64}) })
	var call *CallError
	require.ErrorAs(t, err, &call)
	require.NotEmpty(t, call.Text)
	require.Contains(t, err.Error(), "aclrtFree returned ")
	require.Empty(t, d.Library().RecentText(), "another thread has no message")
	require.NoError(t, d.Thread().Do(func() error {
		require.Empty(t, d.Library().RecentText(), "the message was taken")
		_, err := d.Malloc(0)
		require.Error(t, err)
		return nil
	}))
}

// TestHostMemoryIsNotTheDevices: device and host addresses do not mix.
func TestHostMemoryIsNotTheDevices(t *testing.T) {
	d := open(t, 0)
	b, err := d.AllocPinned(device.U8, 64)
	require.NoError(t, err)
	require.Error(t, d.Thread().Do(func() error {
		return d.Copy(address(b.Bytes()), address(b.Bytes()), 64, HostToDevice)
	}))
}

func TestThreadEnds(t *testing.T) {
	d := open(t, 0)
	other, err := d.NewThread()
	require.NoError(t, err)
	hold, held := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-held; cancel() }()
	require.ErrorIs(t, other.DoContext(ctx, func() error { close(held); <-hold; return nil }), context.Canceled)
	close(hold)
	other.Close()
	require.ErrorIs(t, other.Do(func() error { return nil }), ErrClosed)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close(), "twice")
}
