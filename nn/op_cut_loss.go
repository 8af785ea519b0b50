package nn

import (
	"math"

	"github.com/gradfusion/gradfusion/device"
)

// cutCrossEntropyOp is the cross-entropy of logits of which each partner has a
// run of classes.
type cutCrossEntropyOp struct {
	x, y    *Var
	probs   device.Buf
	own     device.Buf          // labels within the part; 0 for those of others, unlabelled
	labels  device.Buf          // as they were given
	d       device.CrossEntropy // of the part
	run     Run                 // of classes
	classes int
	config  CrossEntropyConfig
}

// unlabelled marks rows that count for nothing among the own labels.
const unlabelled = -1

// Of each row the partners exchange, by one sum in which each fills in its own
// places: for each partner the logarithm of its sum of exponentials and its
// largest logit; and, of the whole, these.
const (
	atLabel  = iota // the label's logit
	atFirst         // 1 + its partner's rank, if that is the first of that one's largest
	atSum           // of all logits
	ofTheRow        // how many these are
)

// cutCrossEntropy computes each partner's softmax, rescales it by the exchanged
// logarithms, and gives all partners the same loss. Shoeybi et al. 2019, in one
// exchange of 2 partners + 3 numbers a row.
func (t *Tape) cutCrossEntropy(partners Partners, part *Part, logits *Var, labels device.Buf, d device.CrossEntropy) *Var {
	const layer = "loss"
	if len(part.Runs) != 1 {
		fail(layer, "cross-entropy", "logits in %d runs of classes, want 1", len(part.Runs))
	}
	op := Record[cutCrossEntropyOp](t)
	op.x, op.labels, op.run, op.classes = logits, labels, part.Runs[0], part.Columns()
	op.config = CrossEntropyConfig{Smoothing: d.Smoothing, Ignore: d.Ignore, HasIgnore: d.HasIgnore}
	op.d = device.CrossEntropy{Rows: d.Rows, Classes: d.Classes, Ignore: unlabelled, HasIgnore: true,
		Smoothing: float32(float64(d.Smoothing) * float64(d.Classes) / float64(op.classes))} // as much for each class
	op.y = t.loss(logits)
	op.y.score.correct = t.Keep(device.I32, 1)
	op.y.score.Count = counted(d, labels.I32())
	op.probs, op.own = t.Scratch(device.F32, d.Rows*d.Classes), t.Scratch(device.I32, d.Rows)
	op.localise()
	in := t.wide(logits)
	t.kernels.CrossEntropyForward(op.d, op.y.score.sum, op.y.score.correct, op.probs, in, op.own)
	rows := t.arena.Get(device.F64, d.Rows*(2*partners.Size()+ofTheRow))
	op.tell(rows.F64(), in.F32(), partners)
	settle(partners.Start(device.Sum, rows, layer), layer, "exchange of the partners' softmax")
	op.merge(t, rows.F64(), partners)
	t.arena.Put(rows)
	return op.y
}

func (op *cutCrossEntropyOp) ignored(label int32) bool {
	return op.config.HasIgnore && label == op.config.Ignore
}

// localise fills in the own labels.
func (op *cutCrossEntropyOp) localise() {
	own := op.own.I32()
	for i, label := range op.labels.I32() {
		own[i] = 0
		switch {
		case op.ignored(label):
			own[i] = unlabelled
		case label < 0 || int(label) >= op.classes:
			panic(&device.LabelError{Row: i, Label: label, Classes: op.classes})
		case op.has(label):
			own[i] = label - int32(op.run.Lo)
		}
	}
}

// has reports whether a label is of the own classes.
func (op *cutCrossEntropyOp) has(label int32) bool {
	return int(label) >= op.run.Lo && int(label) < op.run.Hi
}

// tell fills in what this partner knows of each row.
func (op *cutCrossEntropyOp) tell(rows []float64, logits []float32, partners Partners) {
	clear(rows)
	size, n := partners.Size(), op.d.Classes
	for i, label := range op.labels.I32() {
		row := rows[i*(2*size+ofTheRow):][:2*size+ofTheRow]
		mine, total := logits[i*n:][:n], row[2*size:]
		best, sum := 0, 0.0
		for j, v := range mine {
			if v > mine[best] {
				best = j
			}
			sum += float64(v)
		}
		// The largest probability is at least 1/n, so that its logarithm is exact
		// to a rounding.
		p := op.probs.F32()[i*n+best]
		row[2*partners.Rank()] = float64(mine[best]) - math.Log(float64(p))
		row[2*partners.Rank()+1] = float64(mine[best])
		total[atSum] = sum
		if !op.ignored(label) && op.has(label) {
			k := int(label) - op.run.Lo
			total[atLabel] = float64(mine[k])
			if k == best {
				total[atFirst] = float64(1 + partners.Rank())
			}
		}
	}
}

// merge makes the own probabilities those of the whole, and the score.
func (op *cutCrossEntropyOp) merge(t *Tape, rows []float64, partners Partners) {
	size, n, smoothing := partners.Size(), op.d.Classes, float64(op.config.Smoothing)
	loss, correct := 0.0, int32(0)
	for i, label := range op.labels.I32() {
		row := rows[i*(2*size+ofTheRow):][:2*size+ofTheRow]
		total := row[2*size:]
		logSum := logSumOf(row[:2*size])
		p := op.probs.Slice(i*n, (i+1)*n)
		t.kernels.Scale(p, p, float32(math.Exp(row[2*partners.Rank()]-logSum)))
		if op.ignored(label) {
			continue
		}
		loss += float64((1-smoothing)*(logSum-total[atLabel])) + float64(smoothing*(logSum-total[atSum]/float64(op.classes)))
		if first := int(total[atFirst]); first > 0 && firstOfAll(row[:2*size], first-1) {
			correct++
		}
	}
	op.y.score.sum.F64()[0], op.y.score.correct.I32()[0] = loss, correct
}

// logSumOf folds the partners' logarithms, in their order.
func logSumOf(pairs []float64) float64 {
	largest := math.Inf(-1)
	for r := 0; r < len(pairs); r += 2 {
		largest = max(largest, pairs[r])
	}
	sum := 0.0
	for r := 0; r < len(pairs); r += 2 {
		sum += math.Exp(pairs[r] - largest)
	}
	return largest + math.Log(sum)
}

// firstOfAll reports whether the first of a partner's largest logits is the first
// of all: those before it have smaller ones, those after it none larger.
func firstOfAll(pairs []float64, partner int) bool {
	largest := pairs[2*partner+1]
	for r := range len(pairs) / 2 {
		if other := pairs[2*r+1]; other > largest || other == largest && r < partner {
			return false
		}
	}
	return true
}

func (op *cutCrossEntropyOp) BackwardInput(t *Tape) {
	if _, ok := t.OutGrad(op.y); !ok || !op.x.NeedsGrad() {
		return
	}
	dx, accumulate := t.GradOf(op.x)
	part := t.partOf(dx, accumulate)
	seed := op.y.score.seed
	t.kernels.CrossEntropyBackward(op.d, part, op.probs, op.own, seed)
	// The kernel takes the share of the label that a whole row would have.
	each := float32(float64(op.config.Smoothing) / float64(op.classes))
	for i, label := range op.labels.I32() {
		at := i * op.d.Classes
		switch {
		case op.ignored(label):
		case op.has(label):
			at += int(label) - op.run.Lo
			part.F32()[at] = seed * (op.probs.F32()[at] - (each + (1 - op.config.Smoothing)))
		default:
			part.F32()[at] = seed * (op.probs.F32()[at] - each)
		}
	}
	t.addPart(dx, part, accumulate)
}

func (op *cutCrossEntropyOp) BackwardWeight(*Tape) {}
