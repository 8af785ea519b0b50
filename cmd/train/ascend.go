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

// built refuses a backend that this binary does not have, and takes the rank table
// that RANK_TABLE_FILE names where the settings name none.
func built(c *config.Config, environ []string) error {
	if !onAscend(c) {
		return nil
	}
	if err := ascend.Probe(ascend.Config{Getenv: lookup(environ)}); err != nil {
		return c.Errorf("collective.backend", "collective.backend: ascend: %v", err)
	}
	if c.Collective.RankTable == "" {
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
	users   int
	table   *store.Local // where ranks of this process meet
}

// take loads the runtime for one more rank.
func (a *accelerator) take(c *config.Config) (*ascend.Library, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.library == nil {
		library, err := ascend.Load(ascend.Config{Getenv: lookup(a.environ)})
		if err != nil {
			return nil, fmt.Errorf("collective.backend: ascend: %w", err)
		}
		a.library = library
	}
	a.users++
	return a.library, nil
}

// give ends the use of the runtime with its last rank.
func (a *accelerator) give() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.users--; a.users > 0 {
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
}

// join makes a rank's Comm on its device. leave closes both, and the runtime with
// its last rank; the caller closes none of them itself.
func (a *accelerator) join(ctx context.Context, c *config.Config, s seat, reducer collective.Reducer, events *observe.Recorder) (comm collective.Comm, leave func() error, err error) {
	rank, size := s.transport.Rank(), s.transport.Size()
	index, err := a.index(c, s, size)
	if err != nil {
		return nil, nil, err
	}
	library, err := a.take(c)
	if err != nil {
		return nil, nil, err
	}
	device, err := library.Open(index)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("collective.backend: ascend: rank %d: %w", rank, err), a.give())
	}
	if s.store == nil {
		s.store = a.local()
	}
	if rank == 0 {
		a.explain(library, size)
	}
	comm, err = hccl.New(ctx, hccl.Config{
		Rank: rank, Size: size, Device: device, Store: s.store, Namespace: s.namespace, RankTable: c.Collective.RankTable,
		Hosts: s.transport.Hosts(), Timeout: c.Collective.Timeout, Reducer: reducer, Events: events,
		Deterministic: c.Train.Deterministic == "world", Getenv: lookup(a.environ),
	})
	if err != nil {
		return nil, nil, &coded{errors.Join(err, device.Close(), a.give()), exitNetwork}
	}
	return comm, func() error { return errors.Join(comm.Close(), device.Close(), a.give()) }, nil
}

// index is a rank's device among those that this process sees: the rank table
// names the host's own number of it, else DEVICE_ID does, else it is the rank's
// among those of its host.
func (a *accelerator) index(c *config.Config, s seat, size int) (int, error) {
	get := lookup(a.environ)
	index, given := s.localRank, false
	if s.here {
		index = s.transport.Rank()
	} else if text := get("DEVICE_ID"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return 0, c.Errorf("collective.backend", "collective.backend: ascend: DEVICE_ID is %q; it has to be the number of a device", text)
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

// explain says at start what the ranks run on and what the environment tells it.
// Lines that begin with the name of the program are last words to a launcher.
func (a *accelerator) explain(library *ascend.Library, size int) {
	known, warnings := hccl.Environment(a.environ)
	text := fmt.Sprintf("ascend: %d ranks on devices: %s, CANN %s", size, library.Chip(), library.Version())
	if len(known) > 0 {
		text += "; " + strings.Join(known, " ")
	}
	io.WriteString(a.out, wrap(text, width))
	for _, w := range warnings {
		io.WriteString(a.out, wrap("ascend: "+w, width))
	}
}
