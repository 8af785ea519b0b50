//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// halvesOf is the 16-bit type of a codec that rounds values to it, where the device is to
// add such up itself.
func (c *Comm) halvesOf(call *collective.Call) (t device.Type, ok bool) {
	switch call.Codec.Name() {
	case "f16":
		t = device.F16
	case "bf16":
		t = device.BF16
	default:
		return 0, false
	}
	return t, c.config.ReduceHalves && !call.AcrossHosts && c.onDevice(t, call.Op)
}

// halved is an all-reduce of float32 values that travel, and are added by the device, as
// 16-bit floats; what a mean is made of is divided before.
func (c *Comm) halved(p *pending, t device.Type) error {
	call := &p.call
	in, out := call.In.F32(), output(call).F32()
	n := float32(1)
	if call.Op == collective.Mean {
		n = float32(len(c.ranks))
	}
	typ, op := hcclType(t), hcclOp(call.Op)
	widen, narrow := converters(t)
	const step = pieceSize / 2
	for lo := 0; lo < len(in); lo += step {
		from, to := in[lo:min(lo+step, len(in))], out[lo:min(lo+step, len(in))]
		w := &pass{op: "HcclAllReduce", inBytes: 2 * len(from), outBytes: 2 * len(from), last: lo+step >= len(in)}
		w.fill = func(host []byte) {
			d := device.FromBytes(t, host).U16()
			for i, x := range from {
				d[i] = narrow(x / n)
			}
		}
		w.take = func(host []byte) error {
			for i, h := range device.FromBytes(t, host).U16() {
				to[i] = widen(h)
			}
			return nil
		}
		w.call = func(in, out uintptr, s ascend.Stream) int32 {
			return ascend.Call(c.library.HcclAllReduce, in, out, uintptr(len(from)), typ, op, c.handle, uintptr(s))
		}
		p.sent, p.received = p.sent+w.inBytes, p.received+w.outBytes
		if err := c.fly(p, w); err != nil {
			return err
		}
	}
	return nil
}
