package naive

import "github.com/gradfusion/gradfusion/device"

type number interface {
	~float32 | ~float64 | ~int8 | ~uint8 | ~int32 | ~int64
}

// combine applies op. Max and Min return NaN when either side is NaN; integers
// wrap around.
func combine[T number](op device.ReduceOp, a, b T) T {
	switch op {
	case device.Prod:
		return a * b
	case device.Max:
		if a > b || a != a {
			return a
		}
		return b
	case device.Min:
		if a < b || a != a {
			return a
		}
		return b
	}
	return a + b
}

func reduce[T number](op device.ReduceOp, dst, src []T) {
	for i := range dst {
		dst[i] = combine(op, dst[i], src[i])
	}
}

func (kernels) Reduce(op device.ReduceOp, dst, src device.Buf) {
	device.RequireSame("Reduce", "src", src, dst)
	switch dst.Type {
	case device.F32:
		reduce(op, dst.F32(), src.F32())
	case device.F64:
		reduce(op, dst.F64(), src.F64())
	case device.I32:
		reduce(op, dst.I32(), src.I32())
	case device.I64:
		reduce(op, dst.I64(), src.I64())
	case device.I8:
		reduce(op, dst.I8(), src.I8())
	case device.U8:
		reduce(op, dst.Bytes(), src.Bytes())
	default:
		d, s := dst.U16(), src.U16()
		for i := range d {
			d[i] = narrow(dst.Type, combine(op, widen(dst.Type, d[i]), widen(dst.Type, s[i])))
		}
	}
}

func (k kernels) Fold(dst device.Buf, parts []device.Buf) {
	device.RequireThat(len(parts) > 0, "Fold", "parts", "is empty")
	for _, p := range parts {
		device.RequireSame("Fold", "parts", p, dst)
	}
	if dst.Type == device.F16 || dst.Type == device.BF16 {
		for i, d := range dst.U16() {
			sum := widen(dst.Type, parts[0].U16()[i])
			for _, p := range parts[1:] {
				sum += widen(dst.Type, p.U16()[i])
			}
			d = narrow(dst.Type, sum)
			dst.U16()[i] = d
		}
		return
	}
	// dst may be parts[0] and no other part, so adding in place is the same sum.
	copy(dst.Bytes(), parts[0].Bytes())
	for _, p := range parts[1:] {
		k.Reduce(device.Sum, dst, p)
	}
}

func widen(t device.Type, h uint16) float32 {
	if t == device.BF16 {
		return device.BF16ToF32(h)
	}
	return device.F16ToF32(h)
}

func narrow(t device.Type, f float32) uint16 {
	if t == device.BF16 {
		return device.F32ToBF16(f)
	}
	return device.F32ToF16(f)
}

func (kernels) Cast(dst, src device.Buf) {
	device.Require("Cast", "dst", dst, dst.Type, src.Len)
	device.RequireThat(dst.Len == src.Len, "Cast", "dst", "differs in length from src")
	for i := range src.Len {
		var v float64 // holds every value of the three narrower types
		switch src.Type {
		case device.F32:
			v = float64(src.F32()[i])
		case device.F64:
			v = src.F64()[i]
		default:
			v = float64(widen(src.Type, src.U16()[i]))
		}
		switch dst.Type {
		case device.F32:
			dst.F32()[i] = float32(v)
		case device.F64:
			dst.F64()[i] = v
		case device.BF16:
			dst.U16()[i] = device.F64ToBF16(v)
		default:
			dst.U16()[i] = device.F64ToF16(v)
		}
	}
}
