//go:build linux && (amd64 || arm64)

package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Join connects this rank with all others. All ranks call it at about the same
// time, and all get a transport or all get an error; the error wraps
// ErrUnavailable when the ranks cannot share memory.
func Join(ctx context.Context, c Config) (*Transport, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	limit := c.ConnectTimeout
	if limit == 0 {
		limit = defaultConnectTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	own, err := openOwn()
	if c.Size == 1 {
		if err != nil {
			return nil, err
		}
		memory, err := newMemory()
		if err != nil {
			own.close()
			return nil, err
		}
		return c.newTransport(memory, []int{own.bell}, []int{own.process})
	}
	if c.Rank == 0 {
		return c.host(ctx, own, err)
	}
	return c.visit(ctx, own, err)
}

// descriptors are what a rank gives to its peers.
type descriptors struct{ bell, process int }

func openOwn() (descriptors, error) {
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return descriptors{-1, -1}, fmt.Errorf("eventfd: %w", err)
	}
	process, err := unix.PidfdOpen(os.Getpid(), unix.PIDFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(bell)
		return descriptors{-1, -1}, fmt.Errorf("pidfd_open: %w", err)
	}
	return descriptors{bell, process}, nil
}

func (d descriptors) close() { closeAll([]int{d.bell, d.process}) }

func closeAll(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// Join goes through steps, after each of which every rank publishes whether it
// succeeded, so that all go on or none.
const (
	stepConnect = "connect"
	stepShare   = "share"
)

// agree publishes how a step went here and returns the first rank's error, or
// that ctx ended.
func (c Config) agree(ctx context.Context, step string, failed error) error {
	text := ""
	if failed != nil {
		text = failed.Error()
	}
	if err := c.Store.Set(ctx, c.key(step+"/"+strconv.Itoa(c.Rank)), []byte(text)); err != nil {
		return fmt.Errorf("shm: rank %d of %d: %w", c.Rank, c.Size, err)
	}
	keys := make([]string, c.Size)
	for r := range keys {
		keys[r] = c.key(step + "/" + strconv.Itoa(r))
	}
	answers, err := c.Store.Wait(ctx, keys...)
	if err != nil {
		if failed != nil {
			err = failed
		}
		return fmt.Errorf("shm: rank %d of %d waits for the others to %s: %w", c.Rank, c.Size, step, err)
	}
	for r, answer := range answers {
		if len(answer) == 0 {
			continue
		}
		if r == c.Rank {
			return fmt.Errorf("shm: rank %d: %w: %w", r, ErrUnavailable, failed)
		}
		return fmt.Errorf("shm: rank %d: %w: %w", r, ErrUnavailable, errors.New(string(answer)))
	}
	return nil
}

// visit is Join of a rank that is not 0.
func (c Config) visit(ctx context.Context, own descriptors, failed error) (*Transport, error) {
	conn, err := c.connect(ctx, own, failed)
	own.close() // rank 0 sends them back with the others'
	if conn != nil {
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer stop()
	}
	if err := c.agree(ctx, stepConnect, err); err != nil {
		return nil, err
	}
	fds, err := receiveDescriptors(conn, 1+2*c.Size)
	return c.share(ctx, fds, err)
}

// share makes the transport of all ranks' descriptors: the memory, then bells,
// then processes.
func (c Config) share(ctx context.Context, fds []int, failed error) (*Transport, error) {
	var t *Transport
	if failed == nil {
		memory := os.NewFile(uintptr(fds[0]), "shared memory")
		if failed = checkMemory(memory); failed == nil {
			t, failed = c.newTransport(memory, fds[1:1+c.Size], fds[1+c.Size:])
		} else {
			closeAll(fds[1:])
			_ = memory.Close()
		}
	}
	if err := c.agree(ctx, stepShare, failed); err != nil {
		if t != nil {
			_ = t.Close()
		}
		return nil, err
	}
	return t, nil
}
