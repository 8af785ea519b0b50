package parallel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/collective/tcp"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// rankInStep is one rank of a test in which rank 1 does something wrong.
type rankInStep struct {
	g    *GradFusion
	comm collective.Comm
	tape *nn.Tape
	all  []nn.Block
	set  samples
}

const (
	misuseSamples = 16 // of a step, in micro-batches of 2: 4 for each of two ranks
	misuseMicro   = 2
)

// one runs a micro-batch; change may spoil its batch.
func (r *rankInStep) one(m Micro, change func(b *Batch)) (err error) {
	defer nn.Catch(&err)
	b := r.set.batch(m)
	if change != nil {
		change(&b)
	}
	r.tape.Begin(nn.Pass{Training: true, Micro: m.Index})
	return r.g.Backward(r.tape, crossEntropy(r.tape, nn.Forward(r.tape, r.all, r.tape.Input(b.Input, b.Shape, false)), b), m)
}

// step is the loop that a program writes; each returns an error in place of a
// micro-batch, or runs it.
func (r *rankInStep) step(ctx context.Context, each func(m Micro) error) error {
	for m := range r.g.Micros(misuseSamples, misuseMicro) {
		if err := each(m); err != nil {
			return r.g.Fail(ctx, err)
		}
	}
	return r.g.Wait(ctx)
}

func (r *rankInStep) plain(m Micro) error { return r.one(m, nil) }

var errUser = errors.New("the disk is gone")

// misuses are what rank 1 does wrong in the first step.
var misuses = []struct {
	name   string
	hook   func(rank int, b Bucket) *collective.Work
	each   func(r *rankInStep, m Micro) error
	want   string
	wanted error // what all ranks' errors are
	fails  bool  // the rank's own error is errUser
}{
	{name: "a loss that is not finite", each: func(r *rankInStep, m Micro) error {
		return r.one(m, func(b *Batch) {
			if m.Index == 5 {
				b.Input = device.FromF32(make([]float32, b.Input.Len))
				b.Input.F32()[3] = float32(math.NaN())
			}
		})
	}, want: "the loss of step 1 is NaN, first in micro-batch 5 on rank 1"},
	{name: "a batch in the middle left out", each: func(r *rankInStep, m Micro) error {
		if m.Index == 5 {
			return nil
		}
		return r.plain(m)
	}, want: "step 1, rank 1: a micro-batch was left out: 6 ran where 5 was due", wanted: ErrSkipped},
	{name: "the last batch left out", each: func(r *rankInStep, m Micro) error {
		if m.Last {
			return nil
		}
		return r.plain(m)
	}, want: "step 1, rank 1: a micro-batch was left out: 7 to 7 did not run", wanted: ErrSkipped},
	{name: "all batches left out", each: func(*rankInStep, Micro) error { return nil },
		want: "step 1, rank 1: a micro-batch was left out: none of 4 to 7 ran", wanted: ErrSkipped},
	{name: "no synchronisation", each: func(r *rankInStep, m Micro) error {
		return r.g.NoSync(func() error { return r.plain(m) })
	}, want: "step 1, rank 1: the gradients of this step were never summed over the ranks", wanted: ErrNotSynchronised},
	{name: "an error of the caller's", each: func(r *rankInStep, m Micro) error {
		if m.Index == 6 {
			return fmt.Errorf("micro-batch 6: %w", errUser)
		}
		return r.plain(m)
	}, want: "step 1, rank 1: micro-batch 6: the disk is gone", fails: true},
	{name: "an error before the first backward pass", each: func(*rankInStep, Micro) error { return errUser },
		want: "step 1, rank 1: the disk is gone", fails: true},
	{name: "a label out of range", each: func(r *rankInStep, m Micro) error {
		return r.one(m, func(b *Batch) {
			if m.Last {
				b.Target = device.FromI32([]int32{3, 11})
			}
		})
	}, want: "step 1, rank 1: device: row 1 has label 11, outside of 0..9"},
	{name: "a hook that fails", hook: func(rank int, b Bucket) *collective.Work {
		if sum := b.Sum(); rank == 0 || b.Index != 1 {
			return sum
		}
		return endedWork(errUser)
	}, want: "step 1, rank 1: the gradient hook failed: bucket 1 [fc2.weight]: the disk is gone", wanted: ErrHook, fails: true},
	{name: "a hook that never ends", hook: func(rank int, b Bucket) *collective.Work {
		sum := b.Sum()
		if rank == 0 || b.Index != 2 {
			return sum
		}
		never, _ := collective.NewWork()
		return never
	}, want: "step 1, rank 1: the gradient hook failed: bucket 2 [fc1.bias] has not ended within 20ms", wanted: ErrHook},
	{name: "a hook that returns no work", hook: func(rank int, b Bucket) *collective.Work {
		if sum := b.Sum(); rank == 0 {
			return sum
		}
		return nil
	}, want: "step 1, rank 1: the gradient hook failed: bucket 0 [fc2.bias]: it returned no work", wanted: ErrHook},
}

// misuse runs one wrong and one right step on two ranks and returns the errors of
// the wrong one.
func misuse(t *testing.T, deterministic bool, each func(r *rankInStep, m Micro) error, hook func(int, Bucket) *collective.Work, ranks []collective.Transport) []error {
	t.Helper()
	errs, params := make([]error, len(ranks)), make([]string, len(ranks))
	group, ctx := errgroup.WithContext(t.Context())
	for _, tr := range ranks {
		group.Go(func() error {
			comm := collective.NewGroup(tr, collective.GroupConfig{Name: "world"})
			defer tr.Close()
			defer comm.Close()
			dev := naive.New()
			r := &rankInStep{comm: comm, tape: nn.NewTape(dev), set: newSamples(misuseSamples, 1, 2)}
			r.all = []nn.Block{nn.NewSeq("fc", nn.Flatten{}, linear("fc1", 4, 6), nn.Tanh{}, linear("fc2", 6, 10))}
			if err := nn.Materialize(dev, r.all, 1); err != nil {
				return err
			}
			opt, _ := optim.New(optim.Config{Name: "momentum"})
			cfg := FusionConfig{Device: dev, Deterministic: deterministic, FirstMB: 1e-6, ThresholdMB: 1e-6, HookTimeout: 20 * time.Millisecond}
			if hook != nil {
				cfg.Hook = func(b Bucket) *collective.Work { return hook(comm.Rank(), b) }
			}
			var err error
			if r.g, err = NewGradFusion(ctx, []Stage{{Blocks: r.all, Comm: comm}}, opt, cfg); err != nil {
				return err
			}
			defer r.g.Close()
			errs[comm.Rank()] = r.step(ctx, func(m Micro) error {
				if comm.Rank() == 1 && each != nil {
					return each(r, m)
				}
				return r.plain(m)
			})
			if err := r.g.Step(0.1); !errors.Is(err, ErrNotSynchronised) {
				return fmt.Errorf("Step after a failed Wait gave %v", err)
			}
			if hook != nil {
				return nil
			}
			if err := r.step(ctx, r.plain); err != nil {
				return fmt.Errorf("the step after: %w", err)
			}
			params[comm.Rank()] = Hash(Params(nn.Params(r.all)))
			return r.g.Step(0.1)
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, params[0], params[1])
	return errs
}

func inprocRanks(n int) (out []collective.Transport) {
	for _, tr := range inproc.New(n) {
		out = append(out, tr)
	}
	return out
}

// What one rank does wrong is the same clear error on all, without waiting for a
// time-out, and the ranks may go on.
func TestMisuseOfOneRankIsAnErrorOfAll(t *testing.T) {
	for _, c := range misuses {
		for _, deterministic := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " deterministic ", deterministic), func(t *testing.T) {
				errs := misuse(t, deterministic, c.each, c.hook, inprocRanks(2))
				for rank, err := range errs {
					require.ErrorContains(t, err, c.want, "rank %d", rank)
					if c.wanted != nil {
						require.ErrorIs(t, err, c.wanted, "rank %d", rank)
					}
				}
				require.Equal(t, errs[0].Error(), errs[1].Error())
				if c.fails {
					require.ErrorIs(t, errs[1], errUser)
				}
			})
		}
	}
}

func TestMisuseOverTCP(t *testing.T) {
	ranks := commtest.Joined(t, 2, func(ctx context.Context, r int, client *store.Client) (collective.Transport, error) {
		return tcp.Join(ctx, tcp.Config{Rank: r, Size: 2, Store: client, Token: commtest.JoinToken})
	})
	errs := misuse(t, false, misuses[1].each, nil, ranks)
	for _, err := range errs {
		require.EqualError(t, err, misuses[1].want)
	}
}
