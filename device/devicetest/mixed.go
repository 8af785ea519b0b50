package devicetest

import (
	"testing"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// mixedTypes runs the table with activations and weights of 16 bits: a kernel
// has to give what it gives for the same numbers as float32, rounded once, to
// the bit.
func mixedTypes(t *testing.T, d device.Device) {
	t.Helper()
	for i, e := range experiments() {
		if testing.Short() && i%6 != 0 {
			continue
		}
		for shift := range 2 {
			got, want := newLab(e.name), newLab(e.name)
			e.run(got, &converting{Kernels: d.Kernels(), lab: got, call: shift, half: true})
			e.run(want, &converting{Kernels: d.Kernels(), lab: want, call: shift})
			got.requireGuards(t)
			got.compare(t, want, true)
			if t.Failed() {
				t.FailNow()
			}
		}
	}
}

// converting gives kernels other types than the caller's float32: 16 bits, or
// with half unset float32 that holds numbers of 16 bits. Every operand gets its
// own type; operands that share memory share it.
type converting struct {
	device.Kernels
	lab  *lab
	half bool
	call int // so many operands were met

	now []operand
}

// operand is an argument of the present call.
type operand struct {
	from, to device.Buf
	typ      device.Type
	read     bool // by the kernel
	stored   bool
}

// fill gives the kernel what it reads.
func (o *operand) fill() {
	o.read = true
	for i, v := range o.from.F32() {
		set(o.to, i, rounded(v, o.typ))
	}
}

// in returns what to give for an argument that is read.
func (c *converting) in(b device.Buf) device.Buf { return c.operand(b, true, false) }

// out is in for an argument that is stored, and read first when it is added to.
func (c *converting) out(b device.Buf, accumulate bool) device.Buf {
	return c.operand(b, accumulate, true)
}

func (c *converting) operand(b device.Buf, read, stored bool) device.Buf {
	if b.IsZero() || b.Type != device.F32 {
		return b
	}
	for i := range c.now {
		o := &c.now[i]
		if unsafe.SliceData(o.from.Bytes()) == unsafe.SliceData(b.Bytes()) && o.from.Len == b.Len {
			if o.stored = o.stored || stored; read && !o.read {
				o.fill()
			}
			return o.to
		}
	}
	types := [...]device.Type{device.F16, device.BF16, device.F32, device.F16, device.BF16}
	o := operand{from: b, typ: types[c.call*7%len(types)], stored: stored}
	c.call++
	made := device.F32
	if c.half {
		made = o.typ
	}
	o.to = c.lab.buffer(made, b.Len)
	if read {
		o.fill()
	}
	c.now = append(c.now, o)
	return o.to
}

// done brings back what the kernel stored.
func (c *converting) done() {
	for _, o := range c.now {
		if !o.stored {
			continue
		}
		for i := range o.from.F32() {
			o.from.F32()[i] = rounded(get(o.to, i), o.typ)
		}
	}
	c.now = c.now[:0]
}

func rounded(v float32, t device.Type) float32 {
	switch t {
	case device.F16:
		return device.F16ToF32(device.F32ToF16(v))
	case device.BF16:
		return device.BF16ToF32(device.F32ToBF16(v))
	}
	return v
}

func get(b device.Buf, i int) float32 {
	switch b.Type {
	case device.F16:
		return device.F16ToF32(b.U16()[i])
	case device.BF16:
		return device.BF16ToF32(b.U16()[i])
	}
	return b.F32()[i]
}

// set stores v, which b's type holds exactly.
func set(b device.Buf, i int, v float32) {
	switch b.Type {
	case device.F16:
		b.U16()[i] = device.F32ToF16(v)
	case device.BF16:
		b.U16()[i] = device.F32ToBF16(v)
	default:
		b.F32()[i] = v
	}
}
