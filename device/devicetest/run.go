package devicetest

import (
	"fmt"
	"testing"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
)

// experiment is one call, or a few, on inputs that depend on its name only.
type experiment struct {
	name string
	run  func(l *lab, k device.Kernels)
}

// experiments returns the whole table.
func experiments() []experiment {
	var all []experiment
	for _, part := range [][]experiment{
		elementExperiments(), reduceExperiments(), halfExperiments(), updateExperiments(), matrixExperiments(), convExperiments(),
		normExperiments(), poolExperiments(), layoutExperiments(), lossExperiments(), sequenceExperiments(),
	} {
		all = append(all, part...)
	}
	return all
}

// Run compares the device that open returns with device/naive, and closes it.
func Run(t *testing.T, open func() device.Device) {
	t.Helper()
	d := open()
	compareAll(t, d, naive.New(), false)
	t.Run("16 bits", func(t *testing.T) { mixedTypes(t, d) })
	t.Run("misuse", func(t *testing.T) { misuse(t, d.Kernels()) })
	t.Run("memory", func(t *testing.T) { allocations(t, d) })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// Convolutions compares the convolutions of finite numbers of a device with
// device/naive, for methods that round more than a sum does: the rms of a
// difference may be bound times the rms of the reference. It leaves d open.
func Convolutions(t *testing.T, d device.Device, bound float64) {
	t.Helper()
	for i, shape := range convShapes() {
		if testing.Short() && i%6 != 0 {
			continue
		}
		for _, c := range []struct {
			name string
			run  func(l *lab, k device.Kernels, d device.Conv)
		}{{"forward", convForward}, {"backward", convBackward}} {
			name := fmt.Sprintf("conv %s %+v", c.name, shape)
			got, want := newLab(name), newLab(name)
			got.bound, want.bound = bound, bound
			c.run(got, d.Kernels(), shape)
			c.run(want, naive.New().Kernels(), shape)
			got.requireGuards(t)
			got.compare(t, want, false)
			if t.Failed() {
				t.FailNow() // the first difference says most
			}
		}
	}
}

// Same requires that two devices give the same bits for everything. It leaves
// them open.
func Same(t *testing.T, a, b device.Device) {
	t.Helper()
	compareAll(t, a, b, true)
}

func compareAll(t *testing.T, d, reference device.Device, bits bool) {
	t.Helper()
	for i, e := range experiments() {
		if testing.Short() && i%6 != 0 {
			continue // enough of each kind for the race detector to see the threads
		}
		got, want := newLab(e.name), newLab(e.name)
		e.run(got, d.Kernels())
		e.run(want, reference.Kernels())
		got.requireGuards(t)
		got.compare(t, want, bits)
		if t.Failed() {
			t.FailNow() // the first difference says most
		}
	}
}
