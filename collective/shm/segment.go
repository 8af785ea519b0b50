//go:build linux && (amd64 || arm64)

package shm

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newMemory makes the memory file. It has no name that outlives its holders.
func newMemory() (*os.File, error) {
	fd, err := unix.MemfdCreate("gradfusion", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "shared memory")
	if err := unix.Ftruncate(fd, fileSize); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("size of the shared memory: %w", err)
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("seal the shared memory: %w", err)
	}
	return f, nil
}

// checkMemory refuses a file that another process could cut short, which would
// kill whoever reads it.
func checkMemory(f *os.File) error {
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if err != nil {
		return fmt.Errorf("the descriptor is no shared memory: %w", err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return err
	}
	if seals&unix.F_SEAL_SHRINK == 0 || stat.Size != fileSize {
		return errors.New("the descriptor is no shared memory of this version")
	}
	return nil
}

// mapMemory maps a part of the file.
func mapMemory(f *os.File, at int64, size int) ([]byte, error) {
	b, err := unix.Mmap(int(f.Fd()), at, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of shared memory: %w", size, err)
	}
	return b, nil
}

// populate makes pages now that would be made, slowly, one by one when they are
// first touched; then the lack of memory would be a signal, here it is an error.
func populate(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	for {
		err := unix.Madvise(b, unix.MADV_POPULATE_WRITE)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.EINVAL): // before Linux 5.14
			page := os.Getpagesize()
			for i := 0; i < len(b); i += page {
				atomicAt(b, i).Add(0)
			}
			return nil
		case err != nil:
			return fmt.Errorf("%d bytes of shared memory: %w", len(b), err)
		default:
			return nil
		}
	}
}

// pages widens [lo, hi) of b to whole grains.
func pages(b []byte, lo, hi int) []byte {
	return b[lo/grain*grain : min(roundUp(hi, grain), len(b))]
}

func atomicAt(b []byte, at int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&b[at : at+4][0]))
}

func atomic64At(b []byte, at int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&b[at : at+8][0]))
}
