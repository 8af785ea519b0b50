package parallel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel"
)

// fit fits y = 2x by one weight for a step of eight samples, in micro-batches of
// two, on one rank, and returns the summed gradient.
func fit(ctx context.Context, comm collective.Comm, cfg parallel.FusionConfig) (gradient float32, err error) {
	defer nn.Catch(&err)
	cfg.Device = naive.New()
	layer := nn.NewLinear("fit", 1, 1, nn.LinearConfig{NoBias: true})
	layer.Weight.Init = nn.Init{Value: 1}
	blocks := []nn.Block{nn.NewSeq("fit", layer)}
	if err := nn.Materialize(cfg.Device, blocks, 1); err != nil {
		return 0, err
	}
	optimizer, err := optim.New(optim.Config{Name: "sgd"})
	if err != nil {
		return 0, err
	}
	gf, err := parallel.NewGradFusion(ctx, []parallel.Stage{{Blocks: blocks, Comm: comm}}, optimizer, cfg)
	if err != nil {
		return 0, err
	}
	defer gf.Close()
	tape := nn.NewTape(cfg.Device)
	for m := range gf.Micros(8, 2) {
		one := func() error {
			x, y := make([]float32, m.Samples), make([]float32, m.Samples)
			for i := range x {
				x[i] = float32(m.Lo + i)
				y[i] = 2 * x[i]
			}
			tape.Begin(nn.Pass{Training: true, Micro: m.Index})
			out := nn.Forward(tape, blocks, tape.Input(device.FromF32(x), nn.Plain(m.Samples, 1), false))
			return gf.Backward(tape, tape.MeanSquaredError(out[0], device.FromF32(y)), m)
		}
		// Sums travel with the last micro-batch of a rank's run only, with and without
		// NoSync; in NoSync not even that would send.
		if m.Last {
			err = one()
		} else {
			err = gf.NoSync(one)
		}
		if err != nil {
			return 0, gf.Fail(ctx, err) // and all ranks know
		}
	}
	if err := gf.Wait(ctx); err != nil {
		return 0, err
	}
	list, err := gf.Gradients(ctx)
	if err != nil {
		return 0, err
	}
	return list[0].Buf.F32()[0], gf.Step(0.01)
}

// onTwoRanks runs f on two ranks of this process.
func onTwoRanks(f func(ctx context.Context, comm collective.Comm) error) {
	ranks, ctx := errgroup.WithContext(context.Background())
	for _, transport := range inproc.New(2) {
		ranks.Go(func() error {
			comm := collective.NewGroup(transport, collective.GroupConfig{Name: "world"})
			return errors.Join(f(ctx, comm), comm.Close(), transport.Close())
		})
	}
	if err := ranks.Wait(); err != nil {
		fmt.Println(err)
	}
}

// Two ranks accumulate gradients over two micro-batches each, and have the
// gradient of one batch of eight.
func ExampleGradFusion_NoSync() {
	var gradients [2]float32
	onTwoRanks(func(ctx context.Context, comm collective.Comm) (err error) {
		gradients[comm.Rank()], err = fit(ctx, comm, parallel.FusionConfig{})
		return err
	})
	fmt.Println(gradients)
	// Output:
	// [-35 -35]
}

// A hook follows the sum of each bucket, here to limit what single values may
// add up to.
func ExampleHook() {
	var gradients [2]float32
	onTwoRanks(func(ctx context.Context, comm collective.Comm) (err error) {
		var running sync.WaitGroup
		defer running.Wait()
		limit := func(b parallel.Bucket) *collective.Work {
			sum := b.Sum()
			work, complete := collective.NewWork()
			running.Go(func() {
				err := sum.Wait(ctx)
				if err == nil {
					for i, v := range b.Gradient.F32() {
						b.Gradient.F32()[i] = max(-10, min(v, 10))
					}
				}
				complete(err)
			})
			return work
		}
		gradients[comm.Rank()], err = fit(ctx, comm, parallel.FusionConfig{Hook: limit})
		return err
	})
	fmt.Println(gradients)
	// Output:
	// [-10 -10]
}
