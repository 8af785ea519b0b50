package bench

import (
	"context"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// iterations warms a trial up and says how often to repeat it, alike on all
// ranks.
func (r *runner) iterations(ctx context.Context, t *trial, apart bool) (int, error) {
	if err := r.repeat(ctx, t, r.Warmup, apart); err != nil {
		return 0, err
	}
	if r.Iterations > 0 {
		return r.Iterations, nil
	}
	typical := max(time.Duration(median(r.times)*1e3), 1)
	return int(min(max(r.Budget/typical, leastIterations), mostIterations)), nil
}

// repeat times n calls and leaves in r.times, for each of them, how long the
// slowest rank took.
func (r *runner) repeat(ctx context.Context, t *trial, n int, apart bool) error {
	return r.timed(ctx, n, apart, func() error { return t.run(ctx) })
}

// timed times n runs of what all ranks do.
func (r *runner) timed(ctx context.Context, n int, apart bool, run func() error) error {
	r.times = r.times[:0]
	for i := range n {
		if apart || i%togetherMost == 0 {
			if err := collective.Barrier(ctx, r.comm); err != nil {
				return err
			}
		}
		start := time.Now()
		if err := run(); err != nil {
			return err
		}
		r.times = append(r.times, int64(time.Since(start)))
	}
	return r.comm.Start(ctx, collective.Call{Kind: plan.AllReduce, Op: collective.Max, In: device.FromI64(r.times), Label: "times"}).Wait(ctx)
}

// everywhere reports whether ok holds on all ranks.
func (r *runner) everywhere(ctx context.Context, ok bool) (bool, error) {
	vote := []int64{0}
	if ok {
		vote[0] = 1
	}
	err := r.comm.Start(ctx, collective.Call{Kind: plan.AllReduce, Op: collective.Min, In: device.FromI64(vote), Label: "verdict"}).Wait(ctx)
	return vote[0] == 1, err
}

// limitBlock is how much memory one call of a kernel passes over, for data that
// is used twice to be in the cache.
const limitBlock = 128 << 10

// limit measures Result.Limit over memory, in microseconds: every rank doubles
// its own (zeros, which stay so), all at the same time.
func (r *runner) limit(ctx context.Context, memory device.Buf) (float64, error) {
	clear(memory.Bytes())
	n := max(min(r.Iterations, mostIterations), 0)
	if n == 0 {
		n = leastIterations * 2
	}
	step := limitBlock / memory.Type.Size()
	err := r.timed(ctx, n, true, func() error {
		for lo := 0; lo < memory.Len; lo += step {
			block := memory.Slice(lo, min(lo+step, memory.Len))
			r.Kernels.Reduce(device.Sum, block, block)
		}
		return nil
	})
	return median(r.times), err
}
