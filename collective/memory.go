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
