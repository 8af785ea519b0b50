package nn

import "github.com/gradfusion/gradfusion/device"

// Var is a value on a tape: an activation, an input, or one use of a parameter.
// It belongs to its tape and is invalid after the tape's next Begin.
type Var struct {
	Shape Shape
	Value device.Buf

	grad     device.Buf
	hasGrad  bool
	needs    bool // whether a gradient flows into it
	owned    bool // the tape's arena owns Value
	producer int  // index of the operation that made it; -1 for inputs
	base     *Var // a reshaped Var passes its gradient to its base

	param *Param // set for a use of a parameter
	use   int

	score Score // set for the result of a loss

	partners Partners // set where these have the other features
	part     *Part    // and which ones this has
}

// NeedsGrad reports whether the backward pass computes a gradient for v.
func (v *Var) NeedsGrad() bool { return v != nil && v.needs }

// Grad returns the gradient after the backward pass: for inputs that asked for
// one. It is the zero Buf when none was computed.
func (v *Var) Grad() device.Buf { return v.root().grad }

func (v *Var) root() *Var {
	for v.base != nil {
		v = v.base
	}
	return v
}

// Score is what a loss tells besides its gradient. Sum is over the counted
// samples (not their mean), so that scores of micro-batches add up.
type Score struct {
	sum, correct device.Buf
	seed         float32
	scale        float64 // of sum: one over the features that a loss averages over
	Count        int     // samples that counted
}

// Sum returns the summed loss.
func (s Score) Sum() float64 { return s.sum.F64()[0] * s.scale }

// Correct returns how many samples were classified rightly; 0 for a loss that
// does not classify.
func (s Score) Correct() int {
	if s.correct.IsZero() {
		return 0
	}
	return int(s.correct.I32()[0])
}

// Score returns the score of a loss's result.
func (v *Var) Score() Score { return v.score }

// IsLoss reports whether v is the result of a loss, which SeedLoss takes.
func (v *Var) IsLoss() bool { return !v.score.sum.IsZero() }
