package cpu

import (
	"math"
	"slices"

	"github.com/gradfusion/gradfusion/device"
)

// softmaxRows is how many rows of logits a part has.
const softmaxRows = 32

// softmaxTask is cross-entropy over rows.
type softmaxTask struct {
	set      *kernelSet
	d        device.CrossEntropy
	backward bool
	in, out  tensor // logits and probs, or probs and dlogits
	labels   []int32
	losses   []float64 // of each row; forward
	right    []int32   // rows of each part whose largest logit is the label
	seed     float32
}

// check panics with a *device.LabelError before anything is computed.
func (t *softmaxTask) check() {
	for i, label := range t.labels {
		if !t.ignored(label) && (label < 0 || int(label) >= t.d.Classes) {
			panic(&device.LabelError{Row: i, Label: label, Classes: t.d.Classes})
		}
	}
}

func (t *softmaxTask) ignored(label int32) bool { return t.d.HasIgnore && label == t.d.Ignore }

func (k *kernels) CrossEntropyForward(d device.CrossEntropy, loss, correct, probs, logits, labels device.Buf) {
	const name = "CrossEntropyForward"
	device.Require(name, "loss", loss, device.F64, 1)
	device.Require(name, "correct", correct, device.I32, 1)
	device.Require(name, "probs", probs, device.F32, d.Rows*d.Classes)
	device.RequireFloat(name, "logits", logits, d.Rows*d.Classes)
	device.Require(name, "labels", labels, device.I32, d.Rows)
	w := k.take()
	parts := (d.Rows + softmaxRows - 1) / softmaxRows
	w.losses, w.right = grow(w.losses, d.Rows), grow(w.right, parts)
	t := &w.softmax
	*t = softmaxTask{set: k.set, d: d, in: k.set.tensor(logits), out: k.set.tensor(probs), labels: labels.I32()[:d.Rows], losses: w.losses, right: w.right}
	t.check()
	k.pool.run(w, t, parts)
	var total float64
	var right int32
	for _, v := range t.losses {
		total += v
	}
	for _, v := range t.right {
		right += v
	}
	loss.F64()[0], correct.I32()[0] = total, right
	*t = softmaxTask{}
	k.give(w)
}

func (k *kernels) CrossEntropyBackward(d device.CrossEntropy, dlogits, probs, labels device.Buf, seed float32) {
	const name = "CrossEntropyBackward"
	device.RequireFloat(name, "dlogits", dlogits, d.Rows*d.Classes)
	device.Require(name, "probs", probs, device.F32, d.Rows*d.Classes)
	device.Require(name, "labels", labels, device.I32, d.Rows)
	w := k.take()
	t := &w.softmax
	*t = softmaxTask{set: k.set, d: d, backward: true, in: k.set.tensor(probs), out: k.set.tensor(dlogits), labels: labels.I32()[:d.Rows], seed: seed}
	t.check()
	k.pool.run(w, t, (d.Rows+softmaxRows-1)/softmaxRows)
	*t = softmaxTask{}
	k.give(w)
}

func (t *softmaxTask) do(s *scratch, index int) {
	room := s.plane.floats(2 * t.d.Classes)
	var right int32
	for i := index * softmaxRows; t.d.Classes > 0 && i < min((index+1)*softmaxRows, t.d.Rows); i++ {
		lo, hi := i*t.d.Classes, (i+1)*t.d.Classes
		in, out := t.in.read(room, lo, hi), t.out.place(room[t.d.Classes:], lo, hi, false)
		if t.backward {
			t.gradient(out, in, t.labels[i])
			t.out.wrote(out, lo)
			continue
		}
		loss, rightly := t.softmax(out, in, t.labels[i])
		t.losses[i] = loss
		if rightly {
			right++
		}
	}
	if !t.backward {
		t.right[index] = right
	}
}

// softmax fills in one row of probabilities and returns its loss, and whether
// the label is the first of its largest logits.
func (t *softmaxTask) softmax(probs, logits []float32, label int32) (loss float64, right bool) {
	largest := t.set.largest(logits)
	sum := t.set.exponentials(probs, logits, 1, largest)
	t.set.scale(probs, probs, 1/sum)
	if t.ignored(label) {
		return 0, false
	}
	logSum := float64(largest) + math.Log(float64(sum))
	loss = logSum - float64(logits[label])
	if t.d.Smoothing != 0 {
		// The mean over all classes of the negative logarithms.
		s, plain := float64(t.d.Smoothing), float64(t.set.sum(logits))
		loss = float64((1-s)*loss) + float64(s*(logSum-plain/float64(len(logits))))
	}
	return loss, logits[label] == largest && !slices.Contains(logits[:label], largest)
}

func (t *softmaxTask) gradient(dlogits, probs []float32, label int32) {
	if t.ignored(label) {
		clear(dlogits)
		return
	}
	t.set.shifted(dlogits, probs, float32(float64(t.d.Smoothing)/float64(t.d.Classes)), t.seed)
	target := float32(float64(t.d.Smoothing)/float64(t.d.Classes) + (1 - float64(t.d.Smoothing)))
	dlogits[label] = t.seed * (probs[label] - target)
}

// errorsTask sums squared differences; part i is elementsPerPart elements.
type errorsTask struct {
	x, t []float32
	sums []float64
}

func (k *kernels) SquaredErrorForward(loss, x, t device.Buf) {
	device.Require("SquaredErrorForward", "loss", loss, device.F64, 1)
	requireFloats("SquaredErrorForward", "x", x, "t", t)
	w := k.take()
	parts := (x.Len + elementsPerPart - 1) / elementsPerPart
	w.losses = grow(w.losses, parts)
	w.errors = errorsTask{x.F32(), t.F32(), w.losses}
	k.pool.run(w, &w.errors, parts)
	var total float64
	for _, v := range w.losses {
		total += v
	}
	loss.F64()[0] = total
	w.errors = errorsTask{}
	k.give(w)
}

func (t *errorsTask) do(_ *scratch, index int) {
	lo := index * elementsPerPart
	hi := min(lo+elementsPerPart, len(t.x))
	var sum float64
	for i, v := range t.x[lo:hi] {
		d := float64(v) - float64(t.t[lo+i])
		sum += float64(d * d)
	}
	t.sums[index] = sum
}

func (k *kernels) SquaredErrorBackward(dx, x, t device.Buf, seed float32) {
	requireFloats("SquaredErrorBackward", "dx", dx, "x", x)
	device.RequireSame("SquaredErrorBackward", "t", t, dx)
	k.runElements(elementsTask{op: opErrorBackward, n: dx.Len, dst: dx, a: x, b: t, value: 2 * seed})
}
