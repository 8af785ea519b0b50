//go:build ascend

package hccl_test

import (
	"context"
	"os"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	for name, value := range map[string]string{
		"HCCL_HOST_SOCKET_PORT_RANGE": "auto", "ASCENDSIM_CONNECT_TIMEOUT_MS": "300000", "ASCENDSIM_EXEC_TIMEOUT_MS": "300000",
	} {
		if os.Getenv(name) == "" {
			os.Setenv(name, value)
		}
	}
	return ascendsim.Main(m)
}

// world is n ranks of this process, each with a device of its own.
type world struct {
	library *ascend.Library
	devices []*ascend.Device
	comms   []collective.Comm
}

// patience is what nothing takes but what hangs, on a machine that is busy too.
const patience = 5 * time.Minute

// start makes a world. Settings change each rank's Config. When the test ends all
// is closed and what is left counted.
func start(tb testing.TB, n int, settings ...func(*hccl.Config)) *world {
	tb.Helper()
	w, err := try(tb, n, settings...)
	require.NoError(tb, err)
	return w
}

// devices opens those of a world of n ranks, which have no Comms yet.
func devices(tb testing.TB, n int) *world {
	tb.Helper()
	l, err := ascend.Load(ascend.Config{Dir: os.Getenv(ascendsim.LibrariesVariable)})
	require.NoError(tb, err)
	w := &world{library: l, comms: make([]collective.Comm, n)}
	for r := range n {
		d, err := l.Open(r)
		require.NoError(tb, err)
		w.devices = append(w.devices, d)
	}
	tb.Cleanup(func() { w.close(tb) })
	return w
}

func try(tb testing.TB, n int, settings ...func(*hccl.Config)) (*world, error) {
	tb.Helper()
	w := devices(tb, n)
	table := store.NewLocal()
	var all errgroup.Group
	for r := range n {
		all.Go(func() (err error) {
			c := hccl.Config{Rank: r, Size: n, Device: w.devices[r], Store: table, Namespace: "test", Getenv: os.Getenv, Timeout: patience, JoinTimeout: patience}
			for _, set := range settings {
				set(&c)
			}
			w.comms[r], err = hccl.New(context.Background(), c)
			return err
		})
	}
	return w, all.Wait()
}

func (w *world) close(tb testing.TB) {
	var all errgroup.Group
	for _, c := range w.comms {
		if c != nil {
			all.Go(c.Close)
		}
	}
	require.NoError(tb, all.Wait())
	for _, d := range w.devices {
		require.NoError(tb, d.Close())
	}
	for _, what := range []string{"communicators", "streams", "events", "device memory", "pinned memory", "contexts", "blocking copies"} {
		require.Zero(tb, alive(w.library, what), what)
	}
	require.NoError(tb, w.library.Close())
}

// alive is the simulator's count of what was made and not released.
func alive(l *ascend.Library, what string) int32 {
	h, err := l.LoadOther("libascendcl.so")
	if err != nil {
		panic(err)
	}
	name := append([]byte(what), 0)
	return ascend.Call(h.Symbol("ascendsim_alive"), uintptr(unsafe.Pointer(&name[0])))
}

// each runs f on all ranks at once and returns their errors.
func (w *world) each(f func(ctx context.Context, c collective.Comm) error) []error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	errs := make([]error, len(w.comms))
	var all errgroup.Group
	for r, c := range w.comms {
		all.Go(func() error { errs[r] = f(ctx, c); return nil })
	}
	_ = all.Wait()
	return errs
}
