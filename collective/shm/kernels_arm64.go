//go:build linux

package shm

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

func sumKernel(device.Type) func(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int) {
	return nil
}

func copyPastCache(dst, src []byte) int { return 0 }

func copyAhead(dst, src []byte) int { return 0 }

func exchange(dst, src, dst2, src2 []byte) int { return 0 }
