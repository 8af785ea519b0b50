package bench

import (
	"context"
	"slices"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// limitBlock is how much memory one call of a kernel passes over, for data that
// is read twice to be in the cache.
const limitBlock = 128 << 10

// stream measures Result.Limit: every rank doubles its own memory, zeros that
// stay so, all at the same time. It returns the slowest rank's times, or nothing
// where no limit is asked for. It runs before and after the calls to compare
// with, in half of their time each: a machine drifts.
func (r *runner) stream(ctx context.Context, t *trial) ([]int64, error) {
	if !r.Limit || r.Kernels == nil || t.op.SendReceive || t.op.Kind != plan.AllReduce {
		return nil, nil
	}
	clear(t.memory.Bytes())
	step := limitBlock / t.memory.Type.Size()
	pass := func() error {
		for lo := 0; lo < t.memory.Len; lo += step {
			block := t.memory.Slice(lo, min(lo+step, t.memory.Len))
			r.Kernels.Reduce(device.Sum, block, block)
		}
		return nil
	}
	if err := r.timed(ctx, r.Warmup, true, func() {}, pass); err != nil {
		return nil, err
	}
	n := r.Iterations
	if n == 0 {
		n = r.affordable(r.Budget / 2)
	}
	err := r.timed(ctx, n, true, func() {}, pass)
	return slices.Clone(r.times), err
}
