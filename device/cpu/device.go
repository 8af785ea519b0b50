package cpu

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/gradfusion/gradfusion/device"
)

// Config says how to compute. The zero value is one thread and the best kernels
// that the processor can run.
type Config struct {
	// Threads is how many threads compute, the caller's included; 0 means 1.
	Threads int
	// Alone says that these threads and those of other devices are no more than the
	// host's processors. Between kernels they then wait long without sleeping.
	Alone bool
	// Kernels is "amx", "avx512", "avx2", "neon", "portable", or "auto" (the
	// default) for the first of these that the processor has.
	Kernels string
	// Conv is how 3 x 3 convolutions of stride 1 are computed: "direct", or by
	// Winograd's method on tiles of 2 x 2 or 4 x 4 outputs, "winograd2" and
	// "winograd4", or "auto" (the default) for what the shape and the kernels make
	// fastest. Winograd's method spreads a NaN or an infinity over its tile, and
	// its rounding errors are larger (see the package comment).
	Conv string
}

// Device implements device.Device on the host's processor. Kernels run on the
// caller's goroutine and on Threads-1 goroutines that the device owns.
type Device struct {
	set  *kernelSet
	conv convMethod
	pool *pool

	mixed mixed

	regions device.HostRegions
	scratch scratchRoom

	mu   sync.Mutex
	free []*workspace
}

var (
	_ device.Device  = (*Device)(nil)
	_ device.Kernels = (*kernels)(nil)
)

// New starts a device. It fails when the processor lacks what c.Kernels needs.
func New(c Config) (*Device, error) {
	if c.Threads < 0 {
		return nil, fmt.Errorf("cpu device: %d threads", c.Threads)
	}
	set, err := chooseKernels(c.Kernels)
	if err != nil {
		return nil, fmt.Errorf("cpu device: %w", err)
	}
	conv, err := parseConv(c.Conv, set)
	if err != nil {
		return nil, fmt.Errorf("cpu device: %w", err)
	}
	d := &Device{set: set, conv: conv}
	d.scratch.arena = device.NewArena(d)
	d.pool = newPool(max(1, c.Threads), c.Alone, &d.scratch)
	d.regions.Busy = c.Threads >= runtime.NumCPU()
	k := (*kernels)(d)
	d.mixed = mixed{k, device.NewWidened(k, device.HostAlloc)}
	return d, nil
}

// Name returns "cpu(avx512)", or as the kernels are called.
func (d *Device) Name() string { return "cpu(" + d.set.name + ")" }

// Threads returns how many threads compute.
func (d *Device) Threads() int { return d.pool.threads }

// Alloc returns zeroed heap memory.
func (d *Device) Alloc(t device.Type, n int) (device.Buf, error) { return d.regions.Alloc(t, n) }

// Region maps memory outside of the Go heap, on huge pages where there are any.
func (d *Device) Region(least int) (device.Buf, error) { return d.regions.Region(least) }

// Release unmaps a Region.
func (d *Device) Release(b device.Buf) { d.regions.Release(b) }

// Sync does nothing: kernels return when they are done.
func (d *Device) Sync() error { return nil }

// Record returns an event that has happened.
func (d *Device) Record() device.Event { return done{} }

// After waits for e on the caller's goroutine.
func (d *Device) After(e device.Event) { _ = e.Wait(context.Background()) }

// Kernels returns the arithmetic. It panics with a *device.ShapeError on
// arguments that do not fit.
func (d *Device) Kernels() device.Kernels { return &d.mixed }

// Close ends the goroutines, waits for them and unmaps the regions. Kernels
// called later run on their caller alone.
func (d *Device) Close() error {
	d.pool.close()
	d.mu.Lock()
	d.free = nil // whose memory goes
	d.mu.Unlock()
	d.scratch.mu.Lock()
	d.scratch.arena = device.NewArena(d)
	d.scratch.mu.Unlock()
	d.regions.Close()
	return nil
}

type done struct{}

func (done) Wait(context.Context) error { return nil }

// kernels is the Device seen as device.Kernels. Its methods stand in a file per
// family.
type kernels Device

// take returns a workspace that no other call uses; give it back after.
func (k *kernels) take() *workspace {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.free); n > 0 {
		w := k.free[n-1]
		k.free = k.free[:n-1]
		return w
	}
	return newWorkspace(k.set, &k.regions, &k.scratch)
}

func (k *kernels) give(w *workspace) {
	w.room.leave()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.free = append(k.free, w)
}
