package parallel_test

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel"
)

// trainLoop is the loop of the README on one rank.
func trainLoop(ctx context.Context, comm collective.Comm, set *data.Source, steps int, outcome *parallel.Outcome) error {
	const batch, micro = 64, 16
	dev, err := cpu.New(cpu.Config{})
	if err != nil {
		return err
	}
	defer dev.Close()
	model, err := models.New(models.Config{Name: "mlp", Channels: 1, Height: 8, Width: 8, Classes: 10, Hidden: []int{32}})
	if err != nil {
		return err
	}
	if err := nn.Materialize(dev, model.Blocks, 1); err != nil {
		return err
	}
	optimizer, err := optim.New(optim.Config{Name: "momentum"})
	if err != nil {
		return err
	}
	sampler, err := data.NewSampler(set.Train.Len(), batch, 1)
	if err != nil {
		return err
	}
	batcher, err := data.NewBatcher(set.Train, set.Normalization, data.Augment{}, 1)
	if err != nil {
		return err
	}
	samples := func(step, lo, hi int) (x, y device.Buf, err error) {
		images, labels := make([]float32, (hi-lo)*64), make([]int32, hi-lo)
		indices := sampler.Batch(nil, step)
		err = batcher.Fill(data.Samples{X: images, Y: labels}, indices[lo:hi], sampler.Epoch(step))
		return device.FromF32(images), device.FromI32(labels), err
	}

	gf, err := parallel.NewGradFusion(ctx, []parallel.Stage{{Blocks: model.Blocks, Comm: comm}}, optimizer,
		parallel.FusionConfig{Device: dev})
	if err != nil {
		return err
	}
	defer gf.Close()
	tape := nn.NewTape(dev)
	for step := range steps {
		for m := range gf.Micros(sampler.Size(step), micro) { // this rank's run of micro-batches
			x, y, err := samples(step, m.Lo, m.Hi)
			if err != nil {
				return err
			}
			tape.Begin(nn.Pass{Training: true, Step: step, Micro: m.Index})
			out := nn.Forward(tape, model.Blocks, tape.Input(x, model.Input(m.Samples), false))
			loss := tape.CrossEntropy(out[0], y, nn.CrossEntropyConfig{})
			if err := gf.Backward(tape, loss, m); err != nil {
				return err
			}
		}
		if err := gf.Wait(ctx); err != nil {
			return err
		}
		if err := gf.Step(0.1); err != nil {
			return err
		}
	}
	*outcome = gf.Outcome()
	return nil
}

// Two ranks of one process train on handwritten digits.
func Example() {
	set, err := data.Open(data.Config{Name: "digits"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var outcomes [2]parallel.Outcome
	var ranks errgroup.Group
	for rank, transport := range inproc.New(2) {
		ranks.Go(func() error {
			comm := collective.NewGroup(transport, collective.GroupConfig{Name: "world"})
			defer comm.Close()
			return trainLoop(context.Background(), comm, set, 100, &outcomes[rank])
		})
	}
	if err := ranks.Wait(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("ranks agree:", outcomes[0] == outcomes[1])
	fmt.Println("loss below 0.3:", outcomes[0].Loss < 0.3)
	// Output:
	// ranks agree: true
	// loss below 0.3: true
}
