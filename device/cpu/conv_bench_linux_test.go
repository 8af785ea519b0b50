package cpu_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
)

// layer is the convolutions of one shape in a network.
type layer struct {
	device.Conv
	count int
}

// layers returns the convolutions of the networks of configs/bench.
func layers() map[string][]layer {
	conv := func(count, n, c, size, k, window, stride int) layer {
		return layer{device.Conv{
			N: n, C: c, H: size, W: size, K: k, R: window, S: window, StrideH: stride, StrideW: stride,
			PadH: window / 2, PadW: window / 2, XLayout: device.Blocked16,
		}, count}
	}
	stem := func(n, c, size, k, window, stride, pad int) layer {
		l := conv(1, n, c, size, k, window, stride)
		l.XLayout, l.PadH, l.PadW = device.Plain, pad, pad
		return l
	}
	valid := conv(1, 64, 32, 26, 64, 3, 1)
	valid.PadH, valid.PadW = 0, 0
	return map[string][]layer{
		"cnn": {stem(64, 1, 28, 32, 3, 1, 0), valid},
		"resnet20": {
			stem(64, 3, 32, 16, 3, 1, 1), conv(6, 64, 16, 32, 16, 3, 1), conv(1, 64, 16, 32, 32, 3, 2), conv(5, 64, 32, 16, 32, 3, 1),
			conv(1, 64, 32, 16, 64, 3, 2), conv(5, 64, 64, 8, 64, 3, 1),
		},
		"resnet18": {
			stem(32, 3, 32, 64, 3, 1, 1), conv(4, 32, 64, 32, 64, 3, 1),
			conv(1, 32, 64, 32, 128, 3, 2), conv(1, 32, 64, 32, 128, 1, 2), conv(3, 32, 128, 16, 128, 3, 1),
			conv(1, 32, 128, 16, 256, 3, 2), conv(1, 32, 128, 16, 256, 1, 2), conv(3, 32, 256, 8, 256, 3, 1),
			conv(1, 32, 256, 8, 512, 3, 2), conv(1, 32, 256, 8, 512, 1, 2), conv(3, 32, 512, 4, 512, 3, 1),
		},
		"resnet50": {
			stem(8, 3, 224, 64, 7, 2, 3), conv(1, 8, 64, 56, 64, 1, 1), conv(3, 8, 64, 56, 64, 3, 1), conv(4, 8, 64, 56, 256, 1, 1), conv(2, 8, 256, 56, 64, 1, 1),
			conv(1, 8, 256, 56, 128, 1, 1), conv(1, 8, 128, 56, 128, 3, 2), conv(3, 8, 128, 28, 128, 3, 1), conv(4, 8, 128, 28, 512, 1, 1), conv(3, 8, 512, 28, 128, 1, 1), conv(1, 8, 256, 56, 512, 1, 2),
			conv(1, 8, 512, 28, 256, 1, 1), conv(1, 8, 256, 28, 256, 3, 2), conv(5, 8, 256, 14, 256, 3, 1), conv(6, 8, 256, 14, 1024, 1, 1), conv(5, 8, 1024, 14, 256, 1, 1), conv(1, 8, 512, 28, 1024, 1, 2),
			conv(1, 8, 1024, 14, 512, 1, 1), conv(1, 8, 512, 14, 512, 3, 2), conv(2, 8, 512, 7, 512, 3, 1), conv(3, 8, 512, 7, 2048, 1, 1), conv(2, 8, 2048, 7, 512, 1, 1), conv(1, 8, 1024, 14, 2048, 1, 2),
		},
	}
}

func (l layer) name() string {
	return fmt.Sprintf("%d@%d_to_%d_%dx%d_stride%d", l.C, l.H, l.K, l.R, l.S, l.StrideH)
}

// BenchmarkLayers measures every convolution of a network on one thread by the
// processor time of the best of many runs, which other work on the machine
// disturbs least. A pass of the network takes the sum of "ms/net".
func BenchmarkLayers(b *testing.B) {
	nets := layers()
	for _, net := range []string{"cnn", "resnet20", "resnet18", "resnet50"} {
		for _, l := range nets[net] {
			d := l.Conv
			x, y, w := ramp(d.XLen()), ramp(d.YLen()), ramp(d.WeightLen())
			dx, dw := ramp(d.XLen()), ramp(d.WeightLen())
			operations := float64(2 * d.N * d.OutH() * d.OutW() * d.K * d.C * d.R * d.S)
			for _, pass := range []struct {
				name string
				call func(k device.Kernels)
			}{
				{"forward", func(k device.Kernels) { k.ConvForward(d, y, x, w, device.Buf{}) }},
				{"input", func(k device.Kernels) { k.ConvBackwardInput(d, dx, y, w) }},
				{"weight", func(k device.Kernels) { k.ConvBackwardWeight(d, dw, x, y) }},
			} {
				if pass.name == "input" && d.XLayout == device.Plain {
					continue // nobody asks for a network's input's gradient
				}
				b.Run(fmt.Sprintf("%s/%s/%s", net, l.name(), pass.name), func(b *testing.B) {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					k := open(b, cpu.Config{}).Kernels()
					pass.call(k)
					best := time.Duration(math.MaxInt64)
					for b.Loop() {
						start := processorTime()
						pass.call(k)
						best = min(best, processorTime()-start)
					}
					b.ReportMetric(operations/best.Seconds()/1e9, "GFLOP/s")
					b.ReportMetric(best.Seconds()*1e3*float64(l.count), "ms/net")
				})
			}
		}
	}
}

// processorTime returns what the calling thread has used.
func processorTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
