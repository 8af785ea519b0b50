package cpu_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/devicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a device that the test closes.
func open(t testing.TB, c cpu.Config) *cpu.Device {
	t.Helper()
	d, err := cpu.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// sets returns the kernel sets that this machine can run; where time is short, the first
// and the last: those between share out work as these do.
func sets(t testing.TB) []string {
	var out []string
	for _, name := range []string{"portable", "avx2", "avx512", "amx", "neon"} {
		d, err := cpu.New(cpu.Config{Kernels: name})
		if err != nil {
			continue
		}
		require.NoError(t, d.Close())
		out = append(out, name)
	}
	require.Contains(t, out, "portable")
	if testing.Short() && len(out) > 2 {
		out = []string{out[0], out[len(out)-1]}
	}
	return out
}

func TestConformance(t *testing.T) {
	for _, set := range sets(t) {
		t.Run(set, func(t *testing.T) {
			devicetest.Run(t, func() device.Device { return open(t, cpu.Config{Kernels: set, Conv: "direct"}) })
		})
	}
}

func TestThreadsDoNotChangeBits(t *testing.T) {
	for _, set := range sets(t) {
		one := open(t, cpu.Config{Threads: 1, Kernels: set})
		for _, threads := range []int{2, 3} {
			if set == "portable" && threads == 2 {
				continue // the same cuts as the others, and slower
			}
			t.Run(fmt.Sprintf("%s/%d", set, threads), func(t *testing.T) {
				devicetest.Same(t, open(t, cpu.Config{Threads: threads, Kernels: set}), one)
			})
		}
	}
}

func TestNewRefuses(t *testing.T) {
	_, err := cpu.New(cpu.Config{Kernels: "sse"})
	require.ErrorContains(t, err, `unknown kernels "sse"`)
	_, err = cpu.New(cpu.Config{Threads: -1})
	require.ErrorContains(t, err, "-1 threads")
}

func TestName(t *testing.T) {
	require.Equal(t, "cpu(portable)", open(t, cpu.Config{Kernels: "portable"}).Name())
	require.Equal(t, 1, open(t, cpu.Config{}).Threads())
	require.Equal(t, 3, open(t, cpu.Config{Threads: 3}).Threads())
}
