package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// onAscend reports whether the ranks communicate by Ascend devices.
func onAscend(c *config.Config) bool { return c.Collective.Backend == "ascend" }

// computesOnAscend reports whether kernels run on Ascend devices.
func computesOnAscend(c *config.Config) bool { return c.Compute.Kernels == "ascend" }

// built refuses what this binary does not have, and takes the rank table that
// RANK_TABLE_FILE names where the settings name none.
func built(c *config.Config, environ []string) error {
	key := "compute.kernels"
	switch {
	case onAscend(c):
		key = "collective.backend"
	case !computesOnAscend(c):
		return nil
	}
	if err := ascend.Probe(ascend.Config{Getenv: lookup(environ)}); err != nil {
		return c.Errorf(key, "%s: ascend: %v", key, err)
	}
	if onAscend(c) && c.Collective.RankTable == "" {
		c.Collective.RankTable = lookup(environ)("RANK_TABLE_FILE")
	}
	return nil
}

// accelerator is the Ascend runtime of this process, which its ranks share.
type accelerator struct {
	environ []string
	out     io.Writer

	mu      sync.Mutex
	library *ascend.Library
	open    map[int]*opened
	table   *store.Local // where ranks of this process meet
}

// opened is a device that something uses: communication, computation, or both.
type opened struct {
	device *ascend.Device
	users  int
}

// take opens a device for one more user, and with the first one the runtime.
func (a *accelerator) take(index int) (*ascend.Device, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.open[index]; o != nil {
		o.users++
		return o.device, nil
	}
	if a.library == nil {
		library, err := ascend.Load(ascend.Config{Getenv: lookup(a.environ)})
		if err != nil {
			return nil, err
		}
		a.library, a.open = library, map[int]*opened{}
	}
	said, err := a.inspect(index)
	if err != nil {
		return nil, errors.Join(err, a.unload())
	}
	device, err := a.library.Open(index)
	if err != nil {
		if said != "" {
			err = fmt.Errorf("%w (npu-smi: %s)", err, said)
		}
		return nil, errors.Join(err, a.unload())
	}
	a.open[index] = &opened{device, 1}
	return device, nil
}

// give ends a use of a device, and with the last one that of the runtime.
func (a *accelerator) give(index int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.open[index]
	if o.users--; o.users > 0 {
		return nil
	}
	delete(a.open, index)
	return errors.Join(o.device.Close(), a.unload())
}

// unload lets go of a runtime that nothing uses.
func (a *accelerator) unload() error {
	if len(a.open) > 0 {
		return nil
	}
	library := a.library
	a.library = nil
	return library.Close()
}

// local returns where ranks of this process meet.
func (a *accelerator) local() hccl.Store {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.table == nil {
		a.table = store.NewLocal()
	}
	return a.table
}

// seat is where a rank is among the others.
type seat struct {
	transport collective.Transport // connects the ranks' hosts
	here      bool                 // all ranks are in this process
	localRank int
	namespace string
	store     hccl.Store
	monitor   collective.Monitor // or nil
}

// join makes a rank's Comm on its device. leave closes both, and the runtime with
// its last user; the caller closes none of them itself.
func (a *accelerator) join(ctx context.Context, c *config.Config, s seat, reducer collective.Reducer, events *observe.Recorder) (comm collective.Comm, leave func() error, err error) {
	rank, size := s.transport.Rank(), s.transport.Size()
	index, err := a.index(c, s, size)
	if err != nil {
		return nil, nil, err
	}
	device, err := a.take(index)
	if err != nil {
		return nil, nil, fmt.Errorf("collective.backend: ascend: rank %d: %w", rank, err)
	}
	if s.store == nil {
		s.store = a.local()
	}
	if rank == 0 {
		a.explain(device.Library(), size)
	}
	comm, err = hccl.New(ctx, hccl.Config{
		Rank: rank, Size: size, Device: device, Store: s.store, Namespace: s.namespace, RankTable: c.Collective.RankTable,
		Hosts: s.transport.Hosts(), ReduceHalves: c.Collective.DeviceHalves, Timeout: c.Collective.Timeout, Reducer: reducer, Events: events,
		Deterministic: c.Train.Deterministic == "world", Monitor: s.monitor, Getenv: lookup(a.environ),
	})
	if err != nil {
		return nil, nil, &coded{errors.Join(err, a.give(index)), exitNetwork}
	}
	return comm, func() error { return errors.Join(comm.Close(), a.give(index)) }, nil
}

// index is a rank's device among those that this process sees: the rank table
// names the host's own number of it, else DEVICE_ID does, else it is the rank's
// among those of its host.
func (a *accelerator) index(c *config.Config, s seat, size int) (int, error) {
	get := lookup(a.environ)
	index, given := s.localRank, false
	if s.here {
		index = s.transport.Rank()
	}
	if text := get("DEVICE_ID"); text != "" && (!s.here || size == 1) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return 0, c.Errorf("collective.backend", "ascend: DEVICE_ID is %q; it has to be the number of a device", text)
		}
		index = n
	}
	table, err := rankTable(c, size)
	if err != nil {
		return 0, err
	}
	if table != nil {
		index, given = table.Places()[s.transport.Rank()].Device.ID, true
	}
	visible := get("ASCEND_RT_VISIBLE_DEVICES")
	if !given || visible == "" {
		return index, nil
	}
	for i, text := range strings.Split(visible, ",") {
		if strings.TrimSpace(text) == strconv.Itoa(index) {
			return i, nil
		}
	}
	return 0, c.Errorf("collective.rank_table", "collective.rank_table: rank %d is on device %d, which ASCEND_RT_VISIBLE_DEVICES=%s hides", s.transport.Rank(), index, visible)
}
