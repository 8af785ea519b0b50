package nn_test

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
)

// One forward and backward pass of a linear classifier over two samples.
func Example() {
	dev := naive.New()
	fc := nn.NewLinear("fc", 2, 2, nn.LinearConfig{})
	fc.Weight.Init, fc.Bias.Init = nn.Init{}, nn.Init{} // zeros, for a round result
	model := []nn.Block{nn.NewSeq("head", fc)}
	if err := nn.Materialize(dev, model, 1); err != nil {
		panic(err)
	}
	fc.Weight.OnGrad(func(p *nn.Param, use, leaf int) {
		g, _ := p.Grad(use)
		fmt.Println(p.Name, g.F32())
	})
	t := nn.NewTape(dev)
	t.Begin(nn.Pass{Training: true})
	x := t.Input(device.FromF32([]float32{1, 2, 3, 4}), nn.Plain(2, 2), false)
	logits := nn.Forward(t, model, x)[0]
	loss := t.CrossEntropy(logits, device.FromI32([]int32{0, 1}), nn.CrossEntropyConfig{})
	t.SeedLoss(loss, 1.0/2) // the mean over the two samples
	t.Backward()
	fmt.Printf("loss %.4f, %d of %d right\n", loss.Score().Sum()/2, loss.Score().Correct(), loss.Score().Count)
	// Output:
	// fc.weight [0.5 0.5 -0.5 -0.5]
	// loss 0.6931, 1 of 2 right
}
