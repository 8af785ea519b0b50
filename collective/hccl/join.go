//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gradfusion/gradfusion/device/ascend"
)

// making says how a communicator comes to be: from a rank table, as a part of the
// one of all ranks, or else by root info.
type making struct {
	table string
	whole uintptr // that of all ranks
	id    uint64  // of a part, another one for each
	mb    int     // its buffer; 0: the library's own choice
}

// join makes a communicator of ranks of the world, in their order, on a thread
// which it may block; every one of them calls it with the same name.
//
// A device makes one communicator at a time. Ranks that make several in different
// orders would wait for each other, did each wait with its device taken: so the
// ranks take their devices in ascending order, each after the one before has, and
// none before all are here: a rank may come late, after something that needs the
// device. Who waits then waits for a higher rank only, and there is no circle.
func (j *job) join(ctx context.Context, t *ascend.Thread, name string, ranks []int, m making) (uintptr, error) {
	ctx, cancel := context.WithTimeout(ctx, j.config.Timeout)
	defer cancel()
	order := slices.Sorted(slices.Values(ranks))
	turn := slices.Index(order, j.config.Rank)
	var info [rootInfoSize]byte // zeroed: chips leave most of it as it was
	if err := j.meet(ctx, name, order, turn); err != nil {
		return 0, err
	}
	if turn > 0 {
		before, err := j.config.Store.Wait(ctx, j.key(name, "turn", turn-1))
		if err != nil {
			return 0, fmt.Errorf("rank %d, communicator %s: waiting for rank %d: %w", j.config.Rank, name, order[turn-1], err)
		}
		if len(before[0]) != rootInfoSize { // why there is none
			j.tell(string(before[0]), name, "turn", turn)
			return 0, fmt.Errorf("rank %d, communicator %s: an earlier rank failed: %s", j.config.Rank, name, before[0])
		}
		copy(info[:], before[0])
	}
	select {
	case j.device.Joining <- struct{}{}:
	case <-ctx.Done():
		err := fmt.Errorf("rank %d, communicator %s of ranks %v: its device makes another one: %w", j.config.Rank, name, ranks, context.Cause(ctx))
		j.tell(err.Error(), name, "turn", turn)
		return 0, err
	}
	type communicator struct {
		handle uintptr
		err    error
	}
	made := make(chan communicator, 1)
	var settled atomic.Bool // it is taken, or given up
	go func() {             // ends when the library gives up, by HCCL_CONNECT_TIMEOUT
		defer func() { <-j.device.Joining }()
		var c communicator
		c.err = t.Do(func() (err error) {
			c.handle, err = j.create(ctx, name, ranks, turn, m, &info)
			if !settled.CompareAndSwap(false, true) && c.handle != 0 {
				ascend.Call(j.library.HcclCommDestroy, c.handle)
			}
			return err
		})
		made <- c
	}()
	var c communicator
	select {
	case c = <-made:
	case <-ctx.Done():
		if c.err = context.Cause(ctx); !settled.CompareAndSwap(false, true) {
			c = <-made // at once
		}
	}
	if c.err != nil {
		return 0, fmt.Errorf("rank %d, communicator %s of ranks %v: %w", j.config.Rank, name, ranks, c.err)
	}
	return c.handle, nil
}

// meet tells the first rank of a communicator that this one is here, and on the
// first waits for all.
func (j *job) meet(ctx context.Context, name string, order []int, turn int) error {
	if turn > 0 {
		return j.config.Store.Set(ctx, j.key(name, "here", turn), nil)
	}
	for other := 1; other < len(order); other++ {
		if _, err := j.config.Store.Wait(ctx, j.key(name, "here", other)); err != nil {
			err = fmt.Errorf("rank %d, communicator %s: waiting for rank %d: %w", j.config.Rank, name, order[other], err)
			j.tell(err.Error(), name, "turn", turn)
			return err
		}
	}
	return nil
}

// create is the part of join that happens on the device's thread. handle is
// written by no other goroutine.
func (j *job) create(ctx context.Context, name string, ranks []int, turn int, m making, info *[rootInfoSize]byte) (handle uintptr, err error) {
	y := j.library
	rank := uintptr(uint32(slices.Index(ranks, j.config.Rank)))
	config := j.commConfig(m.mb)
	if turn == 0 && m.table == "" && m.whole == 0 {
		if err := j.failed("HcclGetRootInfo", name, ascend.Call(y.HcclGetRootInfo, uintptr(unsafe.Pointer(info)))); err != nil {
			j.tell(fmt.Sprintf("rank %d: %v", j.config.Rank, err), name, "turn", turn)
			return 0, err
		}
	}
	if err := j.config.Store.Set(ctx, j.key(name, "turn", turn), info[:]); err != nil {
		return 0, err
	}
	if m.whole != 0 {
		members := make([]uint32, len(ranks))
		for i, r := range ranks {
			members[i] = uint32(r)
		}
		code := ascend.Call(y.newer.HcclCreateSubCommConfig, uintptr(unsafe.Pointer(&m.whole)), uintptr(len(members)), uintptr(unsafe.Pointer(&members[0])),
			uintptr(m.id), rank, uintptr(unsafe.Pointer(&config[0])), uintptr(unsafe.Pointer(&handle)))
		return handle, j.failed("HcclCreateSubCommConfig", name, code)
	}
	if m.table != "" {
		path := append([]byte(m.table), 0)
		code := ascend.Call(y.HcclCommInitClusterInfoConfig, uintptr(unsafe.Pointer(&path[0])), rank, uintptr(unsafe.Pointer(&config[0])), uintptr(unsafe.Pointer(&handle)))
		return handle, j.failed("HcclCommInitClusterInfoConfig", name, code)
	}
	code := ascend.Call(y.HcclCommInitRootInfoConfig, uintptr(uint32(len(ranks))), uintptr(unsafe.Pointer(info)), rank, uintptr(unsafe.Pointer(&config[0])), uintptr(unsafe.Pointer(&handle)))
	return handle, j.failed("HcclCommInitRootInfoConfig", name, code)
}

func (j *job) commConfig(mb int) []byte {
	return commConfig(j.library.capability, mb, j.config.Deterministic && !j.chip.first, "")
}

// destroyTime bounds how long a communicator that is busy is asked to end.
const destroyTime = 10 * time.Second

// destroy ends a communicator, again where it is busy.
func (j *job) destroy(t *ascend.Thread, name string, handle uintptr) error {
	if handle == 0 {
		return nil
	}
	again := time.NewTicker(5 * time.Millisecond) // nothing tells when it is not busy any more
	defer again.Stop()
	for end := time.Now().Add(destroyTime); ; <-again.C {
		var code int32
		err := t.Do(func() error {
			code = ascend.Call(j.library.HcclCommDestroy, handle)
			return j.failed("HcclCommDestroy", name, code)
		})
		if code != resultAgain || time.Now().After(end) {
			return err
		}
	}
}
