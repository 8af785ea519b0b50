package devicetest

import (
	"bytes"
	"math"
	"testing"

	"github.com/gradfusion/gradfusion/device"
)

// compare requires the outputs of l to be those of want, to the bit where bits
// is set or the bound is 0. All NaN are alike.
func (l *lab) compare(t *testing.T, want *lab, bits bool) {
	t.Helper()
	if len(l.outputs) != len(want.outputs) {
		t.Errorf("%s: %d outputs, not %d", l.name, len(l.outputs), len(want.outputs))
		return
	}
	for i, o := range l.outputs {
		w := want.outputs[i]
		switch {
		case o.bound == 0 || bits:
			requireEqual(t, l.name+": "+o.label, o.buf, w.buf)
		default:
			requireClose(t, l.name+": "+o.label, values(o.buf), values(w.buf), o.bound)
		}
		if o.image {
			padding(o.n, o.c, o.h, o.w, func(i int) {
				if v := o.buf.F32()[i]; v != 0 && !t.Failed() {
					t.Errorf("%s: %s: padding element %d is %v", l.name, o.label, i, v)
				}
			})
		}
	}
}

func requireEqual(t *testing.T, label string, got, want device.Buf) {
	t.Helper()
	if bytes.Equal(got.Bytes(), want.Bytes()) {
		return
	}
	g, w := values(got), values(want)
	for i := range w {
		if g[i] != w[i] && (g[i] == g[i] || w[i] == w[i]) || math.Signbit(g[i]) != math.Signbit(w[i]) && w[i] == 0 {
			t.Errorf("%s: element %d of %d is %v, want %v", label, i, len(w), g[i], w[i])
			return
		}
	}
}

func requireClose(t *testing.T, label string, got, want []float64, bound float64) {
	t.Helper()
	if len(want) < 64 {
		bound *= 5 // the terms of a few sums may happen to cancel in all of them
	}
	var difference, size float64
	worst := 0
	for i, w := range want {
		if w != w || math.IsInf(w, 0) {
			if got[i] != w && (got[i] == got[i] || w == w) {
				t.Errorf("%s: element %d is %v, want %v", label, i, got[i], w)
				return
			}
			continue
		}
		d := got[i] - w
		difference += d * d
		size += w * w
		if d != d || math.Abs(d) > math.Abs(got[worst]-want[worst]) {
			worst = i
		}
	}
	if !(difference <= bound*bound*size) {
		t.Errorf("%s: rms of the difference is %.3g of the rms, bound %.3g; worst: element %d of %d is %v, want %v",
			label, math.Sqrt(difference/size), bound, worst, len(want), got[worst], want[worst])
	}
}

// values returns the elements as float64; I64 loses digits that tests do not
// use.
func values(b device.Buf) []float64 {
	out := make([]float64, b.Len)
	for i := range out {
		switch b.Type {
		case device.F32:
			out[i] = float64(b.F32()[i])
		case device.F64:
			out[i] = b.F64()[i]
		case device.F16:
			out[i] = float64(device.F16ToF32(b.U16()[i]))
		case device.BF16:
			out[i] = float64(device.BF16ToF32(b.U16()[i]))
		case device.I32:
			out[i] = float64(b.I32()[i])
		case device.I64:
			out[i] = float64(b.I64()[i])
		case device.I8:
			out[i] = float64(b.I8()[i])
		case device.U8:
			out[i] = float64(b.Bytes()[i])
		}
	}
	return out
}
