package collective

import (
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// grown returns b with n bytes, whose content is undefined.
func grown(b []byte, n int) []byte {
	if cap(b) >= n {
		return b[:n]
	}
	return aligned(n)
}

// aligned returns n zeroed bytes that start at a multiple of device.Align.
func aligned(n int) []byte {
	b := make([]byte, n+device.Align)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % device.Align
	return b[skip : int(skip)+n : int(skip)+n]
}
