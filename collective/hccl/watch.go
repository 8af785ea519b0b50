//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"time"
	"unsafe"

	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/observe"
)

// asyncError asks, on a thread of the device, whether the communicator has failed
// beside its streams: HCCL tells 0 or 21, a packet lost for good.
func (c *Comm) asyncError() error {
	var found int32
	code := ascend.Call(c.library.HcclGetCommAsyncError, c.handle, uintptr(unsafe.Pointer(&found)))
	if code != 0 {
		return c.failed("HcclGetCommAsyncError", c.name, code)
	}
	if found != 0 {
		return c.remote(c.name, found)
	}
	return nil
}

// record notes the spans of a pass that has ended: the call's on the Comm's lane,
// and those of its copies on lanes beside it. The device tells the times between
// its events; they are set back from now.
func (c *Comm) record(s *slot, p *pending) {
	events := c.config.Events
	if events == nil {
		return
	}
	var before [3]time.Duration // began, loaded, ran: before done
	err := c.waiting.Do(func() (err error) {
		for i, e := range []ascend.Event{s.began, s.loaded, s.ran} {
			if before[i], err = c.device.Elapsed(e, s.done); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return // the times are for display only
	}
	now := events.Now()
	at := func(i int) int64 { return now - before[i].Nanoseconds() }
	name := p.call.Label
	if name == "" {
		name = p.call.Kind.String()
	}
	span := func(kind observe.Kind, lane string, from, to int64) observe.Span {
		return observe.Span{Kind: kind, Lane: lane, Name: name, Start: min(from, to), End: to}
	}
	if s.pass.inBytes > 0 {
		events.Record(span(observe.Call, c.name+" to device", at(0), at(1)))
	}
	if s.pass.outBytes > 0 {
		events.Record(span(observe.Call, c.name+" from device", at(2), now))
	}
	if s.pass.last {
		events.Record(span(observe.CallWait, c.name, p.began, at(1)))
		call := span(observe.Call, c.name, at(1), now)
		call.Bytes, call.BytesIn = int64(p.sent), int64(p.received)
		events.Record(call)
	}
}
