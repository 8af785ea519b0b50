package cpu

import "github.com/gradfusion/gradfusion/device"

// room is memory for one kernel call, which its threads share: pieces of one
// region, taken one behind the other and all given back at the end. What a call
// needs differs from layer to layer by megabytes and by purpose; a room is as
// large as the largest call, and not as the largest piece for each purpose.
type room struct {
	regions *device.HostRegions
	region  device.Buf
	used    int          // bytes
	small   []device.Buf // regions that did not suffice in the present call
}

// leastRoom is what is asked for at first, where a region is no larger than asked
// for.
const leastRoom = 1 << 20

// floats returns n float32 of undefined content, aligned to a cache line.
func (r *room) floats(n int) []float32 {
	size := n * device.F32.Size()
	if r.used+size > r.region.Len {
		r.grow(size)
	}
	b := r.region.Slice(r.used, r.used+size)
	r.used += (size + device.Align - 1) / device.Align * device.Align
	return b.As(device.F32).F32()
}

// grow starts a region that would have sufficed for the whole call.
func (r *room) grow(size int) {
	all := r.used + size
	for _, b := range r.small {
		all += b.Len
	}
	b, err := r.regions.Region(max(all, 2*r.region.Len, leastRoom))
	if err != nil {
		panic(err) // sizes come from shapes whose tensors exist
	}
	if !r.region.IsZero() {
		r.small = append(r.small, r.region)
	}
	r.region, r.used = b, 0
}

// leave takes back all pieces.
func (r *room) leave() {
	r.used = 0
	for _, b := range r.small {
		r.regions.Release(b)
	}
	r.small = r.small[:0]
}
