package devicetest

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
)

func types() []device.Type {
	return []device.Type{device.F32, device.F16, device.BF16, device.F64, device.I32, device.I64, device.I8, device.U8}
}

// typed returns n numbers of any type; integers are small but overflow 8 bits
// when a few are multiplied, which has to wrap around.
func (l *lab) typed(t device.Type, n int) device.Buf {
	b := l.buffer(t, n)
	for i := range n {
		v := l.specialNumber()
		whole := l.random.IntN(40) - 20
		switch t {
		case device.F32:
			b.F32()[i] = v
		case device.F16:
			b.U16()[i] = device.F32ToF16(v)
		case device.BF16:
			b.U16()[i] = device.F32ToBF16(v)
		case device.F64:
			b.F64()[i] = float64(v) * 1.0000001
		case device.I32:
			b.I32()[i] = int32(whole)
		case device.I64:
			b.I64()[i] = int64(whole)
		case device.I8:
			b.I8()[i] = int8(whole)
		case device.U8:
			b.Bytes()[i] = uint8(whole)
		}
	}
	return b
}

func reduceExperiments() []experiment {
	var all []experiment
	for _, t := range types() {
		for _, n := range []int{0, 1, 7, 8, 17, 257, 2500, 16400} {
			all = append(all,
				experiment{fmt.Sprintf("copy %s/%d", t, n), func(l *lab, k device.Kernels) {
					dst, src := l.buffer(t, n), l.typed(t, n)
					k.Copy(dst, src)
					l.keep("dst", dst, 0)
				}},
				experiment{fmt.Sprintf("reduce %s/%d", t, n), func(l *lab, k device.Kernels) {
					for op := device.Sum; op <= device.Min; op++ {
						dst, src := l.typed(t, n), l.typed(t, n)
						k.Reduce(op, dst, src)
						l.keep(fmt.Sprintf("operation %d", op), dst, 0)
					}
				}},
				experiment{fmt.Sprintf("fold %s/%d", t, n), func(l *lab, k device.Kernels) { folds(l, k, t, n) }},
			)
			if t <= device.F64 {
				all = append(all, experiment{fmt.Sprintf("cast %s/%d", t, n), func(l *lab, k device.Kernels) {
					for to := device.F32; to <= device.F64; to++ {
						dst, src := l.buffer(to, n), l.typed(t, n)
						k.Cast(dst, src)
						l.keep("to "+to.String(), dst, 0)
					}
				}})
			}
		}
	}
	return all
}

func folds(l *lab, k device.Kernels, t device.Type, n int) {
	for _, count := range []int{1, 2, 3, 5} {
		parts := make([]device.Buf, count)
		for i := range parts {
			parts[i] = l.typed(t, n)
		}
		dst := l.buffer(t, n)
		k.Fold(dst, parts)
		l.keep(fmt.Sprintf("%d parts", count), dst, 0)
		k.Fold(parts[0], parts)
		l.keep(fmt.Sprintf("%d parts into the first", count), parts[0], 0)
	}
}
