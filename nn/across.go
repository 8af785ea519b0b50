package nn

import "github.com/gradfusion/gradfusion/device"

// Across makes BatchNorm layers take their statistics over the micro-batches of
// several ranks, which run the same layers in the same order. Methods return when
// all have taken part, with the same bits everywhere; an error becomes a *UseError
// of the pass. The slices are the caller's.
type Across interface {
	// Moments replaces the count values of each channel, their means and their sums
	// of squared deviations by those of all, and returns how many values those are.
	Moments(layer string, count int, mean, m2 []float64) (total int, err error)
	// Sums replaces sums by the sum over all.
	Sums(layer string, sums []float64) error
}

// centre completes dx, which holds scale * invstd * dy so far, where mean and
// invstd come from total values x over several ranks:
//
//	dx = scale invstd (dy - sum(dy)/total - xhat sum(dy xhat)/total)
//
// The sums are over all ranks: they are dshift and dscale, which stay this
// rank's part, because gradients of parameters are summed later.
func (op *batchNormOp) centre(t *Tape, dx, factor device.Buf) {
	c := op.d.C
	sums := t.arena.Get(device.F64, 2*c)
	for i := range c {
		sums.F64()[i], sums.F64()[c+i] = float64(op.dshift.F32()[i]), float64(op.dscale.F32()[i])
	}
	if err := op.across.Sums(op.layer, sums.F64()); err != nil {
		panic(&UseError{Param: op.layer, Err: err})
	}
	shift, scale := t.arena.Get(device.F32, c), t.arena.Get(device.F32, c)
	for i := range c {
		by := -float64(factor.F32()[i]) * float64(op.invstd.F32()[i]) / float64(op.total)
		shift.F32()[i], scale.F32()[i] = float32(by*sums.F64()[i]), float32(by*sums.F64()[c+i])
	}
	d := op.d
	d.Activation, d.Accumulate = device.Identity, false
	t.kernels.BatchNormForward(d, dx, op.x.Value, op.mean, op.invstd, scale, shift, dx)
	t.arena.Put(scale)
	t.arena.Put(shift)
	t.arena.Put(sums)
}
