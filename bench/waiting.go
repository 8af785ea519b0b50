package bench

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// waitingRounds is how often a computation runs alone and beside a call.
const waitingRounds = 40

// waiting measures Result.Waiting: every rank computes, alone and then while the
// trial's call, which all ranks but the last have started, waits for that one.
// Both take turns, so that a noisy machine disturbs both, and what counts is the
// median of the ratios on rank 0.
func (r *runner) waiting(ctx context.Context, t *trial) (*float64, error) {
	if !r.Waiting || t.op.SendReceive || r.comm.Size() == 1 {
		return nil, nil
	}
	ratios := make([]float64, 0, waitingRounds)
	for range waitingRounds {
		ratio, err := r.besideWaiting(ctx, t)
		if err != nil {
			return nil, err
		}
		ratios = append(ratios, ratio)
	}
	slices.Sort(ratios)
	more := []float64{100 * (ratios[len(ratios)/2] - 1)}
	err := collective.Broadcast(ctx, r.comm, 0, device.FromF64(more))
	return &more[0], err
}

// besideWaiting is one round: the time beside a call over that alone.
func (r *runner) besideWaiting(ctx context.Context, t *trial) (float64, error) {
	if err := collective.Barrier(ctx, r.comm); err != nil {
		return 0, err
	}
	alone := compute()
	if err := collective.Barrier(ctx, r.comm); err != nil {
		return 0, err
	}
	var call *collective.Work
	last := r.comm.Size() - 1
	if t.rank != last {
		call = r.comm.Start(ctx, t.call)
	}
	beside := compute()
	if err := r.tellLast(ctx, last); err != nil {
		return 0, err
	}
	if t.rank == last {
		call = r.comm.Start(ctx, t.call)
	}
	return beside.Seconds() / alone.Seconds(), call.Wait(ctx)
}

// tellLast returns on the last rank when all have called it.
func (r *runner) tellLast(ctx context.Context, last int) error {
	word := device.FromU8([]byte{0})
	if r.comm.Rank() != last {
		return collective.Send(ctx, r.comm, last, word)
	}
	for peer := range last {
		if err := collective.Recv(ctx, r.comm, peer, word); err != nil {
			return err
		}
	}
	return nil
}

// compute keeps this goroutine's processor busy for some milliseconds and
// returns how long that took.
func compute() time.Duration {
	begin := time.Now()
	var x [256]float32
	for range 40_000 {
		for i := range x {
			x[i] = x[i]*0.5 + 1
		}
	}
	runtime.KeepAlive(&x)
	return time.Since(begin)
}
