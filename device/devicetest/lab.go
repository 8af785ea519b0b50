package devicetest

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gradfusion/gradfusion/device"
)

// guard is how many bytes before and after a buffer must stay as they were. It
// keeps buffers aligned.
const guard = 64

const guardByte = 0xa5

// output is a buffer that an experiment filled, and how near it must be.
type output struct {
	label string
	buf   device.Buf
	bound float64 // 0: equal; else rms of the difference over rms of the reference
	// Blocked16 images: padding channels must be zero.
	image      bool
	n, c, h, w int
}

// lab makes an experiment's inputs and collects its outputs.
type lab struct {
	name    string
	random  *rand.Rand
	whole   bool    // small integers instead of normal numbers
	bound   float64 // instead of all other bounds, unless 0
	raw     [][]byte
	outputs []output
}

func newLab(name string) *lab {
	h := fnv.New64a()
	h.Write([]byte(name))
	return &lab{name: name, random: rand.New(rand.NewPCG(h.Sum64(), 7))}
}

// buffer returns n elements between guards, filled with 0xff, which is NaN.
func (l *lab) buffer(t device.Type, n int) device.Buf {
	size := n * t.Size()
	host, err := device.HostAlloc(device.U8, size+2*guard)
	if err != nil {
		panic(err)
	}
	raw := host.Bytes()
	repeat(raw, guardByte)
	repeat(raw[guard:guard+size], 0xff)
	l.raw = append(l.raw, raw)
	if n == 0 {
		return device.Buf{Type: t}
	}
	return device.FromBytes(t, raw[guard:guard+size:guard+size])
}

// repeat fills b, in steps that the race detector sees as few accesses.
func repeat(b []byte, v byte) {
	if len(b) == 0 {
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// number draws a normal number, or an integer from -3 to 3.
func (l *lab) number() float32 {
	if l.whole {
		return float32(l.random.IntN(7) - 3)
	}
	return float32(l.random.NormFloat64())
}

// floats returns n numbers.
func (l *lab) floats(n int) device.Buf {
	b := l.buffer(device.F32, n)
	for i := range b.F32() {
		b.F32()[i] = l.number()
	}
	return b
}

// positive returns n numbers in [0.5, 2).
func (l *lab) positive(n int) device.Buf {
	b := l.buffer(device.F32, n)
	for i := range b.F32() {
		b.F32()[i] = 0.5 + 1.5*l.random.Float32()
	}
	return b
}

// special returns n numbers with NaN, infinities, zeros of both signs and
// subnormal numbers among them.
func (l *lab) special(n int) device.Buf {
	b := l.buffer(device.F32, n)
	for i := range b.F32() {
		b.F32()[i] = l.specialNumber()
	}
	return b
}

func (l *lab) specialNumber() float32 {
	odd := [...]float32{
		float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)),
		math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, math.MaxFloat32, 1, -1,
	}
	if l.random.IntN(2) == 0 {
		return odd[l.random.IntN(len(odd))]
	}
	return l.number()
}

// poison makes a few of the whole numbers in b NaN or infinite, leaving zeros,
// so that padding stays.
func (l *lab) poison(b device.Buf) {
	bad := [...]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	for i, v := range b.F32() {
		if v != 0 && l.random.IntN(20) == 0 {
			b.F32()[i] = bad[l.random.IntN(len(bad))]
		}
	}
}

// image returns a tensor of images whose padding channels are zero.
func (l *lab) image(layout device.Layout, n, c, h, w int) device.Buf {
	b := l.floats(device.ImageLen(layout, n, c, h, w))
	if layout == device.Blocked16 {
		padding(n, c, h, w, func(i int) { b.F32()[i] = 0 })
	}
	return b
}

// padding calls f with the offset of every padding element of Blocked16 images.
func padding(n, c, h, w int, f func(i int)) {
	blocks := device.Blocks(c)
	for i := range n * blocks * h * w * device.Block {
		if i/(h*w*device.Block)%blocks*device.Block+i%device.Block >= c {
			f(i)
		}
	}
}

// clone returns a guarded copy.
func (l *lab) clone(b device.Buf) device.Buf {
	out := l.buffer(b.Type, b.Len)
	copy(out.Bytes(), b.Bytes())
	return out
}

// target returns an output of n floats: NaN, or numbers when it is added to.
func (l *lab) target(n int, accumulate bool) device.Buf {
	if accumulate {
		return l.floats(n)
	}
	return l.buffer(device.F32, n)
}

// targetImage is target for a tensor of images.
func (l *lab) targetImage(layout device.Layout, n, c, h, w int, accumulate bool) device.Buf {
	if accumulate {
		return l.image(layout, n, c, h, w)
	}
	return l.buffer(device.F32, device.ImageLen(layout, n, c, h, w))
}

// keep records an output that must be within bound of the reference.
func (l *lab) keep(label string, b device.Buf, bound float64) {
	switch {
	case l.bound > 0:
		bound = l.bound
	case l.whole:
		bound = 0
	}
	l.outputs = append(l.outputs, output{label: label, buf: b, bound: bound})
}

// keepImage is keep for images.
func (l *lab) keepImage(label string, b device.Buf, layout device.Layout, n, c, h, w int, bound float64) {
	l.keep(label, b, bound)
	o := &l.outputs[len(l.outputs)-1]
	o.image = layout == device.Blocked16
	o.n, o.c, o.h, o.w = n, c, h, w
}

func (l *lab) requireGuards(t *testing.T) {
	t.Helper()
	for _, raw := range l.raw {
		for i := range guard {
			if raw[i] != guardByte || raw[len(raw)-1-i] != guardByte {
				t.Errorf("%s: wrote outside of a buffer of %d bytes", l.name, len(raw)-2*guard)
				return
			}
		}
	}
}
