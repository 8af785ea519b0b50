package collective

import "github.com/gradfusion/gradfusion/device"

// grown returns b with n bytes, whose content is undefined.
func grown(b []byte, n int) []byte {
	if cap(b) >= n {
		return b[:n]
	}
	return aligned(n)
}

// aligned returns n zeroed bytes that start at a multiple of device.Align.
func aligned(n int) []byte {
	b, err := device.HostAlloc(device.U8, n)
	if err != nil {
		panic(err) // sizes come from buffers that exist
	}
	return b.Bytes()
}

// heap gives memory that is kept, in one run, where nothing is shared: single buckets
// are too small for huge pages, without which whoever reads and writes many of them
// waits for translations of addresses.
type heap struct{ rest []byte }

// heapChunk is what it takes at once.
const heapChunk = 16 << 20

// take returns n zeroed bytes that start at a multiple of device.Align.
func (h *heap) take(n int) []byte {
	room := (n + device.Align - 1) / device.Align * device.Align
	if room > heapChunk/2 {
		return aligned(n)
	}
	if room > len(h.rest) {
		h.rest = aligned(heapChunk)
	}
	b := h.rest[:n:n]
	h.rest = h.rest[room:]
	return b
}
