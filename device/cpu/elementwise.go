package cpu

import "github.com/gradfusion/gradfusion/device"

// requireFloats checks that a and dst are floating-point numbers of at most 32
// bits, equally many.
func requireFloats(kernel string, dstName string, dst device.Buf, aName string, a device.Buf) {
	device.RequireFloat(kernel, dstName, dst, dst.Len)
	device.RequireFloat(kernel, aName, a, a.Len)
	device.RequireThat(a.Len == dst.Len, kernel, aName, "differs in length")
}

func (k *kernels) Fill(dst device.Buf, v float32) {
	device.RequireFloat("Fill", "dst", dst, dst.Len)
	k.runElements(elementsTask{op: opFill, n: dst.Len, dst: dst, a: dst, value: v})
}

func (k *kernels) Copy(dst, src device.Buf) {
	device.RequireSame("Copy", "src", src, dst)
	k.runElements(elementsTask{op: opCopy, n: dst.Len, dst: dst, a: src})
}

func (k *kernels) Cast(dst, src device.Buf) {
	for _, b := range [...]device.Buf{dst, src} {
		device.RequireThat(b.Type <= device.F64, "Cast", b.Type.String(), "is no floating-point type")
	}
	device.RequireThat(dst.Len == src.Len, "Cast", "dst", "differs in length from src")
	k.runElements(elementsTask{op: opCast, n: dst.Len, dst: dst, a: src})
}

func (k *kernels) Add(dst, a, b device.Buf) {
	requireFloats("Add", "dst", dst, "a", a)
	requireFloats("Add", "dst", dst, "b", b)
	k.runElements(elementsTask{op: opAdd, n: dst.Len, dst: dst, a: a, b: b})
}

func (k *kernels) Scale(dst, a device.Buf, s float32) {
	requireFloats("Scale", "dst", dst, "a", a)
	k.runElements(elementsTask{op: opScale, n: dst.Len, dst: dst, a: a, value: s})
}

func (k *kernels) Reduce(op device.ReduceOp, dst, src device.Buf) {
	device.RequireSame("Reduce", "src", src, dst)
	k.runElements(elementsTask{op: opReduce, n: dst.Len, dst: dst, a: src, reduce: op})
}

func (k *kernels) Fold(dst device.Buf, parts []device.Buf) {
	device.RequireThat(len(parts) > 0, "Fold", "parts", "is empty")
	for _, p := range parts {
		device.RequireSame("Fold", "parts", p, dst)
	}
	k.runElements(elementsTask{op: opFold, n: dst.Len, dst: dst, parts: parts})
}

func (k *kernels) Activate(f device.Activation, y, x device.Buf) {
	requireFloats("Activate", "y", y, "x", x)
	k.runElements(elementsTask{op: opActivate, n: y.Len, dst: y, a: x, activation: f})
}

func (k *kernels) ActivateBackward(f device.Activation, dx, dy, saved device.Buf, accumulate bool) {
	requireFloats("ActivateBackward", "dx", dx, "dy", dy)
	requireFloats("ActivateBackward", "dx", dx, "saved", saved)
	k.runElements(elementsTask{op: opActivateBackward, n: dx.Len, dst: dx, a: dy, b: saved, activation: f, accumulate: accumulate})
}

func (k *kernels) Dropout(y, x device.Buf, p float32, seed uint64) {
	requireFloats("Dropout", "y", y, "x", x)
	device.RequireThat(p >= 0 && p < 1, "Dropout", "p", "is outside of [0, 1)")
	k.runElements(elementsTask{op: opDropout, n: y.Len, dst: y, a: x, value: 1 / (1 - p), threshold: device.DropoutThreshold(p), seed: seed})
}
