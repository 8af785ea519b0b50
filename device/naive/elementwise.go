package naive

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

func (kernels) Fill(dst device.Buf, v float32) {
	device.Require("Fill", "dst", dst, device.F32, dst.Len)
	for i := range dst.F32() {
		dst.F32()[i] = v
	}
}

func (kernels) Copy(dst, src device.Buf) {
	device.RequireSame("Copy", "src", src, dst)
	copy(dst.Bytes(), src.Bytes())
}

func (kernels) Add(dst, a, b device.Buf) {
	n := dst.Len
	device.Require("Add", "dst", dst, device.F32, n)
	device.RequireSame("Add", "a", a, dst)
	device.RequireSame("Add", "b", b, dst)
	d, x, y := dst.F32(), a.F32(), b.F32()
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func (kernels) Scale(dst, a device.Buf, s float32) {
	device.Require("Scale", "dst", dst, device.F32, dst.Len)
	device.RequireSame("Scale", "a", a, dst)
	d, x := dst.F32(), a.F32()
	for i := range d {
		d[i] = s * x[i]
	}
}

func (kernels) Activate(f device.Activation, y, x device.Buf) {
	device.Require("Activate", "y", y, device.F32, y.Len)
	device.RequireSame("Activate", "x", x, y)
	out, in := y.F32(), x.F32()
	for i := range out {
		out[i] = activate(f, in[i])
	}
}

// activate returns f(v). ReLU(NaN) is NaN and ReLU(-0) is -0.
func activate(f device.Activation, v float32) float32 {
	switch f {
	case device.ReLU:
		if v < 0 {
			return 0
		}
	case device.Tanh:
		return float32(math.Tanh(float64(v)))
	case device.Sigmoid:
		return float32(1 / (1 + math.Exp(-float64(v))))
	case device.GELU, device.GELUTanh, device.SiLU:
		// Far below the gate is 0, and must not meet -infinity.
		x := max(-1000, float64(v))
		return float32(x * gate(f, x))
	}
	return v
}

// gate returns what an activation of the form x * gate(x) multiplies x by.
func gate(f device.Activation, v float64) float64 {
	switch f {
	case device.GELU:
		return math.Erfc(-v/math.Sqrt2) / 2
	case device.GELUTanh:
		return 1 / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(v+float64(0.044715*v*v*v))))
	}
	return 1 / (1 + math.Exp(-v))
}

// gateSlope returns the derivative of gate.
func gateSlope(f device.Activation, v float64) float64 {
	switch f {
	case device.GELU:
		return math.Exp(-v*v/2) / math.Sqrt(2*math.Pi)
	case device.GELUTanh:
		s := gate(f, v)
		return float64(s*(1-s)) * 2 * math.Sqrt(2/math.Pi) * (1 + float64(3*0.044715*v*v))
	}
	s := gate(f, v)
	return s * (1 - s)
}

func (kernels) ActivateBackward(f device.Activation, dx, dy, saved device.Buf, accumulate bool) {
	device.Require("ActivateBackward", "dx", dx, device.F32, dx.Len)
	device.RequireSame("ActivateBackward", "dy", dy, dx)
	device.RequireSame("ActivateBackward", "saved", saved, dx)
	in, g, out := dx.F32(), dy.F32(), saved.F32()
	for i := range in {
		put(in, i, activateBackward(f, g[i], out[i]), accumulate)
	}
}

// activateBackward returns g * f'(x), computed from y = f(x), or from x where
// the activation saves it. ReLU passes g where y is NaN, as PyTorch does.
func activateBackward(f device.Activation, g, y float32) float32 {
	switch f {
	case device.ReLU:
		if y <= 0 {
			return 0
		}
	case device.Tanh:
		return g * (1 - float32(y*y))
	case device.Sigmoid:
		return g * float32(y*(1-y))
	case device.GELU, device.GELUTanh, device.SiLU:
		// Beyond 64 the slope is 0, and must not meet infinity.
		x := max(-64, min(64, float64(y)))
		return float32(float64(g) * (gate(f, x) + float64(x*gateSlope(f, x))))
	}
	return g
}

func (kernels) Dropout(y, x device.Buf, p float32, seed uint64) {
	device.Require("Dropout", "y", y, device.F32, y.Len)
	device.RequireSame("Dropout", "x", x, y)
	device.RequireThat(p >= 0 && p < 1, "Dropout", "p", "is outside of [0, 1)")
	out, in := y.F32(), x.F32()
	scale := 1 / (1 - p)
	for i := range out {
		v := in[i] * scale
		if !device.Keeps(seed, i, p) {
			v = 0
		}
		out[i] = v
	}
}
