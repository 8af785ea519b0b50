//go:build ascend

package aclnn

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/devicetest"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

func TestConformance(t *testing.T) {
	devicetest.Run(t, func() device.Device { return open(t) })
}

func TestLayouts(t *testing.T) {
	for _, layout := range []ascendsim.Layout{ascendsim.CANN9, ascendsim.Old} {
		libraries, err := ascendsim.Build(t.TempDir(), layout, "")
		require.NoError(t, err)
		again(t, libraries, "^TestExactSums$")
	}
}

// TestExactSums: small whole numbers through every operator, with strides,
// transposed, added to what is there, and with bias and activation.
func TestExactSums(t *testing.T) {
	d := open(t)
	k := d.Kernels()
	require.Contains(t, d.Name(), "aclnn(Ascend910B3)+cpu(portable")
	a := device.FromF32([]float32{1, 2, 0, 3, 4, 0}) // 2 x 2, rows of 3
	b := device.FromF32([]float32{1, -1, 2, 0})      // transposed: columns 1 -1, 2 0
	c := device.FromF32([]float32{100, 100, 7, 100, 100})
	m := device.MatMul{M: 2, N: 2, K: 2, TransB: true, LDA: 3, LDC: 3}
	k.MatMul(m, c, a, b, device.Buf{})
	require.Equal(t, []float32{-1, 2, 7, -1, 6}, c.F32())
	m.Accumulate, m.Activation = true, device.ReLU
	k.MatMul(m, c, a, b, device.FromF32([]float32{1, -20}))
	require.Equal(t, []float32{0, 0, 7, 0, 0}, c.F32())

	sum := device.FromF32(make([]float32, 5))
	k.Add(sum, c, device.FromF32([]float32{1, 2, 3, 4, 5}))
	require.Equal(t, []float32{1, 2, 10, 4, 5}, sum.F32())
	k.Add(sum, sum, sum)
	require.Equal(t, []float32{2, 4, 20, 8, 10}, sum.F32())

	columns := device.FromF32([]float32{1, 1, 1})
	k.SumRows(columns, a, 2, 3, true)
	require.Equal(t, []float32{5, 7, 1}, columns.F32())

	wide := device.FromBytes(device.F64, make([]byte, 8*5))
	k.Cast(wide, sum)
	require.Equal(t, []float64{2, 4, 20, 8, 10}, wide.F64())
}

// counted notes which kernels reached the host.
type counted struct {
	device.Device
	kernels *countedKernels
}

func (c counted) Kernels() device.Kernels { return c.kernels }

type countedKernels struct {
	device.Kernels
	calls int
}

func (k *countedKernels) MatMul(d device.MatMul, c, a, b, bias device.Buf) {
	k.calls++
	k.Kernels.MatMul(d, c, a, b, bias)
}

func (k *countedKernels) Add(dst, a, b device.Buf) { k.calls++; k.Kernels.Add(dst, a, b) }
func (k *countedKernels) Cast(dst, src device.Buf) { k.calls++; k.Kernels.Cast(dst, src) }
func (k *countedKernels) SumRows(o, a device.Buf, r, c int, add bool) {
	k.calls++
	k.Kernels.SumRows(o, a, r, c, add)
}

func (k *countedKernels) SumChannels(o, x device.Buf, n, c, h, w int, add bool) {
	k.calls++
	k.Kernels.SumChannels(o, x, n, c, h, w, add)
}

// TestOnTheDevice: the host computes none of the four, of 16 bits either.
func TestOnTheDevice(t *testing.T) {
	host, err := cpu.New(cpu.Config{Kernels: "portable"})
	require.NoError(t, err)
	spy := counted{host, &countedKernels{Kernels: host.Kernels()}}
	d, err := New(Config{Device: accelerator(t), Host: spy})
	require.NoError(t, err)
	k := d.Kernels()
	x, half := device.FromF32(make([]float32, 32)), device.FromBytes(device.BF16, make([]byte, 64))
	y := device.FromF32(make([]float32, 32))
	k.MatMul(device.MatMul{M: 4, N: 4, K: 4}, y, x, half, device.Buf{})
	k.Add(y, x, half)
	k.Cast(half, x)
	k.SumRows(y, half, 2, 16, false)
	k.SumChannels(y, x, 2, 9, 1, 1, false)
	require.Zero(t, spy.kernels.calls)
	k.MatMul(device.MatMul{}, y, x, x, device.Buf{})
	require.Equal(t, 1, spy.kernels.calls, "nothing to compute")
	require.NoError(t, d.Close())
	require.NoError(t, d.Close(), "twice")
}

func TestNewRefuses(t *testing.T) {
	_, err := New(Config{})
	require.EqualError(t, err, "aclnn: Config.Device and Config.Host are needed")
}

// TestNoOperators: what is missing is named, with what was tried.
func TestNoOperators(t *testing.T) {
	bare := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(os.Getenv(ascendsim.LibrariesVariable), "libascendcl.so"), filepath.Join(bare, "libascendcl.so")))
	again(t, bare, "^TestRefused$", "ACLNN_TEST_REFUSED=tried "+bare+"/libopapi.so (")
	again(t, "", "^TestRefused$", "ASCENDSIM_CHIP=910A", "ACLNN_TEST_REFUSED=Ascend910A has no product of float32 matrices")
}

// TestRefused runs in TestNoOperators.
func TestRefused(t *testing.T) {
	want := os.Getenv("ACLNN_TEST_REFUSED")
	if want == "" {
		return
	}
	host, err := cpu.New(cpu.Config{Kernels: "portable"})
	require.NoError(t, err)
	defer host.Close()
	_, err = New(Config{Device: accelerator(t), Host: host})
	require.ErrorContains(t, err, want)
}

// failing runs a kernel and returns what it panicked with.
func failing(t *testing.T, f func()) (err *device.FailureError) {
	defer func() { err, _ = recover().(*device.FailureError) }()
	f()
	t.Fatal("the kernel did not fail")
	return nil
}

// vectors queues the sum of two vectors, and what happens after that.
func (d *Device) vectors(then func() error) error {
	for _, r := range []int{left, right, result} {
		if err := d.upload(&d.rooms[r], make([]byte, 40_000)); err != nil {
			return err
		}
	}
	return errors.Join(d.add(left, right, result, 10_000), then())
}

// hold keeps the stream from going on until the number is 0.
func hold(d *Device) *int32 {
	h, err := d.accelerator.Library().LoadOther("libascendcl.so")
	if err != nil {
		panic(err)
	}
	number := new(int32)
	*number = 1
	ascend.Call(h.Symbol("ascendsim_hold"), uintptr(d.stream), uintptr(unsafe.Pointer(number)))
	return number
}

// TestLifetimes: a tensor or workspace that goes before the stream has passed fails
// the stream, and an executor is used once. What they are of is dead then.
func TestLifetimes(t *testing.T) {
	for want, early := range map[string]func(d *Device) error{
		"a tensor was destroyed before the stream had passed": func(d *Device) error { return d.forget() },
		"the workspace was freed before the stream had passed": func(d *Device) error {
			m := d.workspace
			d.workspace = ascend.Memory{}
			return d.accelerator.Free(m)
		},
		"was used before": func(d *Device) error {
			l := d.accelerator.Library()
			return l.Check("aclnnAdd", ascend.Call(d.library.aclnnAdd, d.workspace.At, uintptr(d.workspace.Size), d.planned.executor, uintptr(d.stream)))
		},
	} {
		t.Run(want, func(t *testing.T) {
			d := open(t)
			err := failing(t, func() {
				d.compute("Add", func() error {
					held := hold(d)
					err := d.vectors(func() error { return early(d) })
					atomic.StoreInt32(held, 0)
					return err
				})
			})
			require.ErrorContains(t, err, want)
			var call *ascend.CallError
			require.ErrorAs(t, err, &call)
			again := failing(t, func() {
				d.Kernels().Add(device.FromF32([]float32{1}), device.FromF32([]float32{1}), device.FromF32([]float32{1}))
			})
			require.ErrorContains(t, again, want, "a device that has failed is dead")
			require.ErrorContains(t, d.Sync(), want)
		})
	}
}

// TestTimeout: what does not end is given up.
func TestTimeout(t *testing.T) {
	d := open(t)
	d.timeout = time.Millisecond
	err := failing(t, func() {
		d.compute("Add", func() error { hold(d); return d.vectors(func() error { return nil }) })
	})
	require.ErrorContains(t, err, "waiting for the stream timed out")
}
