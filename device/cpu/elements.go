package cpu

import (
	"sync/atomic"

	"github.com/gradfusion/gradfusion/device"
)

// elementsPerPart is how many elements a thread takes at once: long enough that
// sharing costs nothing, short enough for the cache, and a whole number of the
// blocks of SumSquares.
const elementsPerPart = 128 * device.NormBlock

type elementOp uint8

const (
	opFill elementOp = iota
	opCopy
	opCast
	opAdd
	opScale
	opReduce
	opFold
	opActivate
	opActivateBackward
	opDropout
	opSGD
	opAdam
	opRMSProp
	opAdaGrad
	opLAMBMoments
	opLAMBStep
	opSumSquares
	opAllFinite
	opErrorBackward
)

// elementsTask is an element-wise operation over n elements of flat buffers.
type elementsTask struct {
	set        *kernelSet
	op         elementOp
	n          int
	dst        device.Buf
	a, b, c    device.Buf
	squares    device.Buf
	parts      []device.Buf
	value      float32
	threshold  uint32
	seed       uint64
	reduce     device.ReduceOp
	activation device.Activation
	accumulate bool
	first      bool
	sgd        sgdNumbers
	adam       adamNumbers
	rms        rmsNumbers
	infinite   uint32 // set atomically
}

// runElements runs t and reports whether it met a number that is not finite.
func (k *kernels) runElements(t elementsTask) (infinite bool) {
	w := k.take()
	t.set = k.set
	w.elements = t
	k.pool.run(w, &w.elements, (t.n+elementsPerPart-1)/elementsPerPart)
	infinite = w.elements.infinite != 0
	w.elements = elementsTask{} // holds on to no buffer
	k.give(w)
	return infinite
}

func (t *elementsTask) do(s *scratch, index int) {
	lo := index * elementsPerPart
	hi := min(lo+elementsPerPart, t.n)
	switch t.op {
	case opCopy:
		copy(t.dst.Slice(lo, hi).Bytes(), t.a.Slice(lo, hi).Bytes())
	case opCast:
		t.cast(s, lo, hi)
	case opReduce:
		t.reducePart(s, lo, hi)
	case opFold:
		t.foldPart(s, lo, hi)
	case opSGD, opAdam:
		t.update(lo, hi)
	case opRMSProp, opAdaGrad, opLAMBMoments, opLAMBStep:
		t.layerUpdate(lo, hi)
	case opSumSquares:
		t.sumSquares(lo, hi)
	default:
		t.floats(s, lo, hi)
	}
}

// floats does the operations on float32, to which it converts what has 16 bits.
func (t *elementsTask) floats(s *scratch, lo, hi int) {
	if t.op == opAllFinite {
		if !finite(t.a.F32()[lo:hi]) {
			atomic.StoreUint32(&t.infinite, 1)
		}
		return
	}
	dst, a, b := t.set.tensor(t.dst), t.set.tensor(t.a), t.set.tensor(t.b)
	step := hi - lo
	var room []float32
	if device.IsHalf(t.dst, t.a, t.b) {
		step, room = castChunk, s.plane.floats(3*castChunk)
	}
	for ; lo < hi; lo += step {
		end := min(lo+step, hi)
		var second []float32
		if !b.missing() {
			second = b.read(room[min(2*castChunk, len(room)):], lo, end)
		}
		out := dst.place(room, lo, end, t.accumulate)
		t.compute(out, a.read(room[min(castChunk, len(room)):], lo, end), second, lo)
		dst.wrote(out, lo)
	}
}

// compute does the operation on the elements from lo on.
func (t *elementsTask) compute(dst, a, b []float32, lo int) {
	switch t.op {
	case opFill:
		fill(dst, t.value)
	case opAdd:
		t.set.add(dst, a, b)
	case opScale:
		t.set.scale(dst, a, t.value)
	case opActivate:
		activate(t.set, t.activation, dst, a)
	case opActivateBackward:
		activateBackward(t.set, t.activation, dst, a, b, t.accumulate)
	case opDropout:
		t.set.dropout(dst, a, t.value, t.threshold, t.seed, lo)
	case opErrorBackward:
		for i, v := range a {
			dst[i] = t.value * (v - b[i])
		}
	}
}

// fill doubles what is filled, at the speed of copying.
func fill(dst []float32, v float32) {
	n := min(len(dst), 64)
	for i := range dst[:n] {
		dst[i] = v
	}
	for ; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// finite reports whether no element is NaN or infinite: those and only those
// leave something when they are subtracted from themselves.
func finite(x []float32) bool {
	var a, b, c, d float32
	for len(x) >= 4 {
		a += x[0] - x[0]
		b += x[1] - x[1]
		c += x[2] - x[2]
		d += x[3] - x[3]
		x = x[4:]
	}
	for _, v := range x {
		a += v - v
	}
	return a+b+c+d == 0
}

func activate(set *kernelSet, f device.Activation, y, x []float32) {
	switch f {
	case device.ReLU:
		set.relu(y, x)
	case device.Tanh:
		set.tanh(y, x)
	case device.Sigmoid:
		set.sigmoid(y, x)
	case device.GELU, device.GELUTanh, device.SiLU:
		set.gated(f, y, x)
	default:
		copy(y, x)
	}
}

func activateBackward(set *kernelSet, f device.Activation, dx, dy, saved []float32, accumulate bool) {
	switch {
	case f == device.ReLU && accumulate:
		set.reluBackwardAdd(dx, dy, saved)
	case f == device.ReLU:
		set.reluBackward(dx, dy, saved)
	case f == device.Identity && accumulate:
		set.add(dx, dx, dy)
	case f == device.Identity:
		copy(dx, dy)
	default:
		set.gradient(f, dx, dy, saved, accumulate)
	}
}
