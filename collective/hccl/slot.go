//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"cmp"
	"errors"

	"github.com/gradfusion/gradfusion/device/ascend"
)

// slotCount is how many pieces are on their way at once: one is copied while
// another one is in the operation.
const slotCount = 2

// slot is memory for one piece on its way to the device, through an operation,
// and back. It grows to the largest piece and stays.
type slot struct {
	hostIn, hostOut ascend.Pinned
	in, out         ascend.Memory
	began, loaded   ascend.Event
	ran, done       ascend.Event

	pass  *pass
	work  *pending
	start int64
}

// pass is one way through the device: inBytes from source (or the slot's hostIn)
// to the device, an operation, outBytes to target (or hostOut).
type pass struct {
	op                string
	inBytes, outBytes int
	needIn, needOut   int             // bytes of the device's memory that op touches
	source, target    uintptr         // pinned memory, or the device's; 0: the slot's
	from, to          ascend.CopyKind // of the copies; 0: to the device, and to the host
	onInput           bool            // the result is where the input was
	call              func(in, out uintptr, s ascend.Stream) int32
	fill              func(host []byte)       // writes hostIn
	take              func(host []byte) error // reads hostOut
	last              bool                    // of its call
	ended             chan error              // for who waits for this pass; nil: nobody
}

func newSlot(d *ascend.Device) (*slot, error) {
	s := &slot{}
	for _, e := range []*ascend.Event{&s.began, &s.loaded, &s.ran, &s.done} {
		var err error
		if *e, err = d.NewTimer(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// fit makes room, on a thread of the device; the slot has no work.
func (s *slot) fit(d *ascend.Device, p *pass) error {
	var errs []error
	if p.source == 0 {
		errs = append(errs, d.GrowHost(&s.hostIn, p.inBytes))
	}
	if p.target == 0 {
		errs = append(errs, d.GrowHost(&s.hostOut, p.outBytes))
	}
	return errors.Join(append(errs, d.Grow(&s.in, max(p.inBytes, p.needIn)), d.Grow(&s.out, max(p.outBytes, p.needOut)))...)
}

// fits reports whether fit has nothing to do. Memory that has grown is not empty.
func (s *slot) fits(p *pass) bool {
	holds := func(have, need int) bool { return have >= max(need, 1) }
	return (p.source != 0 || holds(len(s.hostIn.Bytes), p.inBytes)) &&
		(p.target != 0 || holds(len(s.hostOut.Bytes), p.outBytes)) &&
		holds(s.in.Size, max(p.inBytes, p.needIn)) && holds(s.out.Size, max(p.outBytes, p.needOut))
}

// free gives everything back; no stream has work with it.
func (s *slot) free(d *ascend.Device) error {
	var errs []error
	for _, e := range []ascend.Event{s.began, s.loaded, s.ran, s.done} {
		if e != 0 {
			errs = append(errs, d.DestroyEvent(e))
		}
	}
	return errors.Join(append(errs, d.FreeHost(s.hostIn), d.FreeHost(s.hostOut), d.Free(s.in), d.Free(s.out))...)
}

// enqueue puts a pass into the streams: the copies and the operation wait for each
// other there. It runs on the issuing thread.
func (c *Comm) enqueue(s *slot, p *pass) error {
	d := c.device
	source, target, result := p.source, p.target, s.out.At
	if source == 0 {
		source = s.hostIn.At()
	}
	if target == 0 {
		target = s.hostOut.At()
	}
	if p.onInput {
		result = s.in.At
	}
	var err error
	then := func(step func() error) {
		if err == nil {
			err = step()
		}
	}
	then(func() error { return d.RecordEvent(s.began, c.in) })
	if p.inBytes > 0 {
		then(func() error {
			return d.CopyAsync(s.in.At, source, p.inBytes, cmp.Or(p.from, ascend.HostToDevice), c.in)
		})
	}
	then(func() error { return d.RecordEvent(s.loaded, c.in) })
	then(func() error { return d.WaitEvent(c.running, s.loaded) })
	then(func() error { return c.failed(p.op, c.name, p.call(s.in.At, s.out.At, c.running)) })
	then(func() error { return d.RecordEvent(s.ran, c.running) })
	then(func() error { return d.WaitEvent(c.out, s.ran) })
	if p.outBytes > 0 {
		then(func() error { return d.CopyAsync(target, result, p.outBytes, cmp.Or(p.to, ascend.DeviceToHost), c.out) })
	}
	then(func() error { return d.RecordEvent(s.done, c.out) })
	return c.ran(err, c.name)
}
