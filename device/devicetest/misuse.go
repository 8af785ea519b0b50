package devicetest

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// misuse requires the typed panics that package nn turns into errors.
func misuse(t *testing.T, k device.Kernels) {
	f := func(n int) device.Buf { return device.FromF32(make([]float32, n)) }
	half := func(n int) device.Buf { return device.FromBytes(device.F16, make([]byte, 2*n)) }
	one := device.FromF64(make([]float64, 1))
	right := device.FromI32(make([]int32, 1))
	conv := device.Conv{N: 1, C: 1, H: 3, W: 3, K: 1, R: 3, S: 3, StrideH: 1, StrideW: 1}
	tooLarge := conv
	tooLarge.R = 5
	wide, odd := conv, conv
	wide.DilateW = 2
	odd.Groups = 2
	for name, call := range map[string]func(){
		"length":   func() { k.Add(f(3), f(3), f(4)) },
		"type":     func() { k.Scale(f(1), one, 2) },
		"matrix":   func() { k.MatMul(device.MatMul{M: 2, N: 2, K: 2}, f(4), f(3), f(4), device.Buf{}) },
		"stride":   func() { k.MatMul(device.MatMul{M: 2, N: 2, K: 2, LDA: 1}, f(4), f(4), f(4), device.Buf{}) },
		"image":    func() { k.ConvForward(conv, f(15), f(144), f(9), device.Buf{}) },
		"window":   func() { k.ConvForward(tooLarge, f(16), f(144), f(15), device.Buf{}) },
		"dilation": func() { k.ConvForward(wide, f(16), f(144), f(9), device.Buf{}) },
		"groups":   func() { k.ConvForward(odd, f(16), f(144), f(9), device.Buf{}) },
		"no parts": func() { k.Fold(f(1), nil) },
		"channels": func() { k.CopyChannels(device.Plain, f(4), 4, 3, f(2), 2, 1, 1, 1) },
		"dropout":  func() { k.Dropout(f(1), f(1), 1, 0) },
		"update":   func() { k.SGD(device.Update{LR: 1}, half(1), half(1), device.Buf{}) },
		"norm state": func() {
			k.BatchNormForward(device.BatchNorm{N: 1, C: 2, H: 1, W: 1}, f(2), f(2), f(1), f(2), f(2), f(2), device.Buf{})
		},
	} {
		var shape *device.ShapeError
		if err := panicOf(call); !errors.As(err, &shape) {
			t.Errorf("%s: panic with %v, want a *device.ShapeError", name, err)
		}
	}
	sequenceMisuse(t, k)
	var label *device.LabelError
	err := panicOf(func() {
		k.CrossEntropyForward(device.CrossEntropy{Rows: 1, Classes: 2}, one, right, f(2), f(2), device.FromI32([]int32{2}))
	})
	if !errors.As(err, &label) || label.Label != 2 {
		t.Errorf("label: panic with %v, want a *device.LabelError", err)
	}
}

func panicOf(call func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	call()
	return nil
}

// allocations requires aligned, zeroed memory, and events that come.
func allocations(t *testing.T, d device.Device) {
	for ty := device.F32; ty <= device.U8; ty++ {
		b, err := d.Alloc(ty, 37)
		if err != nil || b.Len != 37 || b.Type != ty {
			t.Fatalf("Alloc(%s, 37) = %d x %s, %v", ty, b.Len, b.Type, err)
		}
		if uintptr(unsafe.Pointer(&b.Bytes()[0]))%device.Align != 0 {
			t.Errorf("memory of %s is not aligned", ty)
		}
		for _, v := range b.Bytes() {
			if v != 0 {
				t.Fatalf("memory of %s is not zero", ty)
			}
		}
	}
	if _, err := d.Alloc(device.F32, -1); err == nil {
		t.Error("Alloc of a negative length succeeded")
	}
	event := d.Record()
	d.After(event)
	if err := event.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := d.Sync(); err != nil {
		t.Error(err)
	}
}
