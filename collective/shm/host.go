//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// host is Join of rank 0.
func (c Config) host(ctx context.Context, own descriptors, failed error) (*Transport, error) {
	fds, err := c.gather(ctx, own, failed)
	if err != nil {
		return nil, err
	}
	return c.share(ctx, fds, nil)
}

// gather serves the socket until all ranks have come, makes the memory, passes
// everything to everybody, and returns rank 0's own set.
func (c Config) gather(ctx context.Context, own descriptors, failed error) (fds []int, err error) {
	defer own.close()
	var reception *reception
	name := ""
	if failed == nil {
		if reception, failed = c.receive(); failed == nil {
			name = reception.listener.Addr().String()
			defer reception.close()
			defer reception.end()
		}
	}
	if err := c.Store.Set(ctx, c.key("socket"), []byte(name)); err != nil {
		return nil, fmt.Errorf("shm: rank 0 of %d: %w", c.Size, err)
	}
	if err := c.agree(ctx, stepConnect, failed); err != nil {
		return nil, err
	}
	reception.end()
	all, failed := c.collect(reception, own)
	if failed == nil {
		fds, failed = duplicate(all)
		for rank := 1; rank < c.Size && failed == nil; rank++ {
			failed = sendDescriptors(reception.conns[rank], all)
		}
		closeAll(all[:1]) // the others are their owners'
	}
	if failed == nil {
		return fds, nil
	}
	closeAll(fds)
	reception.close() // ends the wait of those that got nothing
	reception.conns = nil
	return nil, c.agree(ctx, stepShare, failed)
}

// collect makes the list that everybody gets: the memory, bells, processes.
func (c Config) collect(r *reception, own descriptors) ([]int, error) {
	for rank := 1; rank < c.Size; rank++ {
		if r.conns[rank] == nil {
			return nil, fmt.Errorf("rank %d did not come", rank)
		}
	}
	memory, err := newMemory()
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	fd, err := unix.FcntlInt(memory.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	all := []int{fd, own.bell}
	for rank := 1; rank < c.Size; rank++ {
		all = append(all, r.fds[rank][0])
	}
	all = append(all, own.process)
	for rank := 1; rank < c.Size; rank++ {
		all = append(all, r.fds[rank][1])
	}
	return all, nil
}

func duplicate(fds []int) ([]int, error) {
	var own []int
	for _, fd := range fds {
		d, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			closeAll(own)
			return nil, fmt.Errorf("duplicate descriptors: %w", err)
		}
		own = append(own, d)
	}
	return own, nil
}
