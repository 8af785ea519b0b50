package naive

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// counts reports whether a row takes part, and checks its label.
func counts(d device.CrossEntropy, labels []int32, row int) bool {
	label := labels[row]
	if d.HasIgnore && label == d.Ignore {
		return false
	}
	if label < 0 || int(label) >= d.Classes {
		panic(&device.LabelError{Row: row, Label: label, Classes: d.Classes})
	}
	return true
}

// target returns the probability that row's label and smoothing give class j.
func target(d device.CrossEntropy, label int32, j int) float64 {
	t := float64(d.Smoothing) / float64(d.Classes)
	if int(label) == j {
		t += 1 - float64(d.Smoothing)
	}
	return t
}

func (kernels) CrossEntropyForward(d device.CrossEntropy, loss, correct, probs, logits, labels device.Buf) {
	const name = "CrossEntropyForward"
	device.Require(name, "loss", loss, device.F64, 1)
	device.Require(name, "correct", correct, device.I32, 1)
	device.Require(name, "probs", probs, device.F32, d.Rows*d.Classes)
	device.Require(name, "logits", logits, device.F32, d.Rows*d.Classes)
	device.Require(name, "labels", labels, device.I32, d.Rows)
	var total float64
	var right int32
	for i := range d.Rows {
		row := logits.F32()[i*d.Classes : (i+1)*d.Classes]
		best := 0
		for j, v := range row {
			if v > row[best] {
				best = j
			}
		}
		largest := float64(row[best])
		var sum float64
		for _, v := range row {
			sum += math.Exp(float64(v) - largest)
		}
		logSum := largest + math.Log(sum)
		for j, v := range row {
			probs.F32()[i*d.Classes+j] = float32(math.Exp(float64(v) - logSum))
		}
		if !counts(d, labels.I32(), i) {
			continue
		}
		label := labels.I32()[i]
		for j, v := range row {
			if t := target(d, label, j); t != 0 {
				total += float64(t * (logSum - float64(v)))
			}
		}
		if int(label) == best {
			right++
		}
	}
	loss.F64()[0], correct.I32()[0] = total, right
}

func (kernels) CrossEntropyBackward(d device.CrossEntropy, dlogits, probs, labels device.Buf, seed float32) {
	const name = "CrossEntropyBackward"
	device.Require(name, "dlogits", dlogits, device.F32, d.Rows*d.Classes)
	device.Require(name, "probs", probs, device.F32, d.Rows*d.Classes)
	device.Require(name, "labels", labels, device.I32, d.Rows)
	for i := range d.Rows {
		counted := counts(d, labels.I32(), i)
		for j := range d.Classes {
			o := i*d.Classes + j
			dlogits.F32()[o] = 0
			if counted {
				t := float32(target(d, labels.I32()[i], j))
				dlogits.F32()[o] = seed * (probs.F32()[o] - t)
			}
		}
	}
}

func (kernels) SquaredErrorForward(loss, x, t device.Buf) {
	device.Require("SquaredErrorForward", "loss", loss, device.F64, 1)
	device.Require("SquaredErrorForward", "x", x, device.F32, x.Len)
	device.RequireSame("SquaredErrorForward", "t", t, x)
	var sum float64
	for i, v := range x.F32() {
		diff := float64(v) - float64(t.F32()[i])
		sum += float64(diff * diff)
	}
	loss.F64()[0] = sum
}

func (kernels) SquaredErrorBackward(dx, x, t device.Buf, seed float32) {
	device.Require("SquaredErrorBackward", "dx", dx, device.F32, dx.Len)
	device.RequireSame("SquaredErrorBackward", "x", x, dx)
	device.RequireSame("SquaredErrorBackward", "t", t, dx)
	for i, v := range x.F32() {
		dx.F32()[i] = 2 * seed * (v - t.F32()[i])
	}
}
