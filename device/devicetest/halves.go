package devicetest

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// halfExperiments convert every 16-bit float, and float32 numbers around every
// rounding boundary. A rounded NaN counts with its bits: its sign and the upper
// bits of its payload survive.
func halfExperiments() []experiment {
	var all []experiment
	for _, t := range []device.Type{device.F16, device.BF16} {
		all = append(all,
			experiment{"widen every " + t.String(), func(l *lab, k device.Kernels) {
				src, dst := l.buffer(t, 1<<16), l.buffer(device.F32, 1<<16)
				for i := range src.U16() {
					src.U16()[i] = uint16(i)
				}
				k.Cast(dst, src)
				l.keep("dst", dst, 0)
			}},
			experiment{"round to " + t.String(), func(l *lab, k device.Kernels) {
				tails := []uint32{0, 1, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0xffff}
				src, dst := l.buffer(device.F32, len(tails)<<16), l.buffer(t, len(tails)<<16)
				for i := range src.F32() {
					src.F32()[i] = math.Float32frombits(uint32(i/len(tails))<<16 | tails[i%len(tails)])
				}
				k.Cast(dst, src)
				l.keep("bits", device.FromBytes(device.U8, dst.Bytes()), 0)
			}},
		)
	}
	return all
}
