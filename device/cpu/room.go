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
	enough  int          // bytes that every call so far would have had room in
}

// leastRoom is what is asked for at first, where a region is no larger than asked
// for.
const leastRoom = 1 << 20

// mostAhead is up to which size a region is larger than needed. Beyond it memory
// that nobody uses, whose pages are filled all the same, is dearer than another
// mapping.
const mostAhead = 1 << 30

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

// grow starts another region.
func (r *room) grow(size int) {
	b, err := r.regions.Region(r.next(size))
	if err != nil {
		panic(err) // sizes come from shapes whose tensors exist
	}
	if !r.region.IsZero() {
		r.small = append(r.small, r.region)
	}
	r.region, r.used = b, 0
}

// next is the size of a region for another piece: one that would have sufficed for
// the whole call, or, where that is much, the piece alone.
func (r *room) next(size int) int {
	all := r.used + size
	for _, b := range r.small {
		all += b.Len
	}
	r.enough = max(r.enough, all)
	ahead := max(all, 2*r.region.Len, leastRoom)
	switch {
	case r.region.IsZero():
		return max(r.enough, leastRoom)
	case ahead > mostAhead:
		return size
	}
	return ahead
}

// leave takes back all pieces. Where a call needed several regions, the next one
// gets one of their size.
func (r *room) leave() {
	r.used = 0
	if r.region.Len < r.enough {
		r.regions.Release(r.region)
		r.region = device.Buf{}
	}
	for _, b := range r.small {
		r.regions.Release(b)
	}
	r.small = r.small[:0]
}
