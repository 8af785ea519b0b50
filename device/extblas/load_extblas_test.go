//go:build extblas

package extblas

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/devicetest"
)

// present returns the libraries of this machine; one at least has to be there.
func present(t testing.TB) []string {
	var names []string
	for _, name := range Libraries() {
		d, err := New(Config{Library: name})
		if err != nil {
			t.Log(err)
			continue
		}
		require.NoError(t, d.Close())
		names = append(names, name)
	}
	require.NotEmpty(t, names, "no library to test; on Debian or Ubuntu: apt-get install libopenblas0 libdnnl2")
	return names
}

func TestConformance(t *testing.T) {
	for _, name := range present(t) {
		for _, threads := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/%d", name, threads), func(t *testing.T) {
				devicetest.Run(t, func() device.Device {
					d, err := New(Config{Library: name, CPU: cpu.Config{Threads: threads}})
					require.NoError(t, err)
					return d
				})
			})
		}
	}
}

func TestMissingLibraryNamesWhatWasTried(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libnothing.so")
	_, err := New(Config{Library: "onednn", Path: path})
	require.ErrorContains(t, err, "no onednn on this machine; tried "+path+": ")
	require.NotContains(t, err.Error(), "\n")
}

// BenchmarkMatMul compares, on one thread and the same operands, this module's
// product with each library's: short runs that alternate, of which the best
// counts, so that the ratio holds on a machine with other work.
func BenchmarkMatMul(b *testing.B) {
	names := present(b)
	for _, d := range []device.MatMul{
		{M: 1024, N: 1024, K: 1024}, {M: 64, N: 1024, K: 784, TransB: true},
		{M: 64, N: 1024, K: 784}, {M: 64, N: 784, K: 1024}, {M: 1024, N: 784, K: 64, TransA: true},
	} {
		b.Run(fmt.Sprintf("%dx%dx%d_%v_%v", d.M, d.N, d.K, d.TransA, d.TransB), func(b *testing.B) {
			an, bn, cn := d.Lens()
			x, y, z := ramp(an), ramp(bn), ramp(cn)
			best := map[string]time.Duration{}
			kernels := map[string]device.Kernels{"cpu": cpuKernels(b)}
			for _, name := range names {
				l, err := New(Config{Library: name})
				require.NoError(b, err)
				b.Cleanup(func() { require.NoError(b, l.Close()) })
				kernels[name] = l.Kernels()
			}
			for b.Loop() {
				for _, name := range append([]string{"cpu"}, names...) {
					start := time.Now()
					kernels[name].MatMul(d, z, x, y, device.Buf{})
					if took := time.Since(start); best[name] == 0 || took < best[name] {
						best[name] = took
					}
				}
			}
			for name, took := range best {
				b.ReportMetric(2*float64(d.M*d.N*d.K)/took.Seconds()/1e9, name+"-GFLOP/s")
				if name != "cpu" {
					b.ReportMetric(float64(took)/float64(best["cpu"]), "ours/"+name)
				}
			}
			b.ReportMetric(0, "ns/op") // the sum of all of them says nothing
		})
	}
}

func cpuKernels(b *testing.B) device.Kernels {
	d, err := cpu.New(cpu.Config{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, d.Close()) })
	return d.Kernels()
}

// ramp returns n floats that are neither zero nor subnormal.
func ramp(n int) device.Buf {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%17-8) * 0.125
	}
	return device.FromF32(x)
}
