package bench

import (
	"context"
	"time"

	"github.com/gradfusion/gradfusion/collective"
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
	return r.affordable(r.Budget), nil
}

// affordable is how many calls like those of r.times fit into a budget.
func (r *runner) affordable(budget time.Duration) int {
	typical := max(time.Duration(median(r.times)*1e3), 1)
	return int(min(max(budget/typical, leastIterations), mostIterations))
}

// repeat times n calls and leaves in r.times, for each of them, how long the
// slowest rank took.
func (r *runner) repeat(ctx context.Context, t *trial, n int, apart bool) error {
	return r.timed(ctx, n, apart || t.renews(), t.renew, func() error { return t.run(ctx) })
}

// timed times n runs of what all ranks do, each after its preparation.
func (r *runner) timed(ctx context.Context, n int, apart bool, prepare func(), run func() error) error {
	r.times = r.times[:0]
	for i := range n {
		prepare()
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
	return collective.AllReduce(ctx, r.comm, collective.Max, device.FromI64(r.times))
}

// everywhere reports whether ok holds on all ranks.
func (r *runner) everywhere(ctx context.Context, ok bool) (bool, error) {
	vote := []int64{0}
	if ok {
		vote[0] = 1
	}
	err := collective.AllReduce(ctx, r.comm, collective.Min, device.FromI64(vote))
	return vote[0] == 1, err
}
