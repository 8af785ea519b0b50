package gorgonia

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	G "gorgonia.org/gorgonia"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel"
)

// A task of 12 images of 2 x 2 in 3 classes, known by their first pixel.
const samples = 12

func task() (images []float32, labels []int32) {
	for i := range samples {
		class := i % 3
		images = append(images, float32(class)-1, float32(i%2), 1, float32(i%5)/4)
		labels = append(labels, int32(class))
	}
	return images, labels
}

// train trains a small mlp on one rank with the given optimizer and returns its
// parameters and the loss of the last step.
func train(ctx context.Context, comm collective.Comm, o optim.Optimizer, steps int, lr float32) (params []float32, loss float64, err error) {
	dev := naive.New()
	model, err := models.New(models.Config{Name: "mlp", Channels: 1, Height: 2, Width: 2, Classes: 3, Hidden: []int{8}})
	if err != nil {
		return nil, 0, err
	}
	if err := nn.Materialize(dev, model.Blocks, 1); err != nil {
		return nil, 0, err
	}
	fusion, err := parallel.NewGradFusion(ctx, []parallel.Stage{{Blocks: model.Blocks, Comm: comm}}, o, parallel.FusionConfig{Device: dev})
	if err != nil {
		return nil, 0, err
	}
	defer fusion.Close()
	images, labels := task()
	tape := nn.NewTape(dev)
	for step := range steps {
		for m := range fusion.Micros(samples, 3) {
			tape.Begin(nn.Pass{Training: true, Step: step, Micro: m.Index})
			x := device.FromF32(images[m.Lo*4 : m.Hi*4])
			out := nn.Forward(tape, model.Blocks, tape.Input(x, model.Input(m.Samples), false))
			score := tape.CrossEntropy(out[0], device.FromI32(labels[m.Lo:m.Hi]), nn.CrossEntropyConfig{})
			if err := fusion.Backward(tape, score, m); err != nil {
				return nil, 0, err
			}
		}
		if err := fusion.Wait(ctx); err != nil {
			return nil, 0, err
		}
		if err := fusion.Step(lr); err != nil {
			return nil, 0, err
		}
	}
	for _, p := range nn.Params(model.Blocks) {
		params = append(params, p.Value.F32()...)
	}
	return params, fusion.Outcome().Loss, nil
}

// onRanks trains on that many ranks of one process, each with an optimizer of
// its own, and returns what each has.
func onRanks(ctx context.Context, ranks, steps int, lr float32, optimizer func() (optim.Optimizer, error)) (params [][]float32, loss []float64, err error) {
	params, loss = make([][]float32, ranks), make([]float64, ranks)
	g, ctx := errgroup.WithContext(ctx)
	for rank, transport := range inproc.New(ranks) {
		g.Go(func() error {
			comm := collective.NewGroup(transport, collective.GroupConfig{Name: "world"})
			o, err := optimizer()
			if err == nil {
				params[rank], loss[rank], err = train(ctx, comm, o, steps, lr)
			}
			return errors.Join(err, comm.Close(), transport.Close())
		})
	}
	return params, loss, g.Wait()
}

// Gorgonia's plain descent and ours round alike, so inside GradFusion they end
// with the same bits, on both ranks.
func TestVanillaSolverInsideGradFusionIsOurSGD(t *testing.T) {
	theirs, _, err := onRanks(t.Context(), 2, 5, 0.1, func() (optim.Optimizer, error) { return NewOptimizer(G.NewVanillaSolver()) })
	require.NoError(t, err)
	ours, _, err := onRanks(t.Context(), 2, 5, 0.1, func() (optim.Optimizer, error) { return optim.New(optim.Config{Name: "sgd"}) })
	require.NoError(t, err)
	require.Equal(t, ours, theirs)
	require.Equal(t, theirs[0], theirs[1])
}

// Gorgonia's Adam trains inside GradFusion on two ranks.
func ExampleOptimizer() {
	params, loss, err := onRanks(context.Background(), 2, 200, 0.01, func() (optim.Optimizer, error) {
		return NewOptimizer(G.NewAdamSolver())
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ranks agree:", fmt.Sprint(params[0]) == fmt.Sprint(params[1]))
	fmt.Println("loss below 0.05:", loss[0] < 0.05)
	// Output:
	// ranks agree: true
	// loss below 0.05: true
}
