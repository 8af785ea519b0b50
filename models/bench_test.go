package models_test

import (
	"testing"

	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
)

// BenchmarkPass is forward and backward of one micro-batch on one thread, at the
// sizes of configs/bench.
func BenchmarkPass(b *testing.B) {
	small := config("resnet18", 3, 32, 10)
	small.Stem = "small"
	for _, c := range []struct {
		models.Config
		batch int
	}{
		{config("mlp", 1, 28, 10), 64}, {config("cnn", 1, 28, 10), 64}, {config("resnet20", 3, 32, 10), 64},
		{small, 32}, {config("resnet50", 3, 224, 1000), 8},
		{models.Config{Name: "gpt", Vocabulary: 256, Context: 256, Layers: 6, Heads: 6, Features: 384}, 8},
	} {
		b.Run(c.Name, func(b *testing.B) {
			batch := c.batch
			dev, err := cpu.New(cpu.Config{})
			if err != nil {
				b.Fatal(err)
			}
			m, err := models.New(c.Config)
			if err != nil {
				b.Fatal(err)
			}
			if err := nn.Materialize(dev, m.Blocks, 1); err != nil {
				b.Fatal(err)
			}
			in := m.Input(batch)
			x, labels := samples(b, dev, m, batch)
			tape, states := nn.NewTape(dev), nn.States(m.Blocks)
			b.ReportAllocs()
			for b.Loop() {
				tape.Begin(nn.Pass{Training: true})
				out := nn.Forward(tape, m.Blocks, tape.Input(x, in, false))[0]
				tape.SeedLoss(tape.CrossEntropy(out, labels, nn.CrossEntropyConfig{}), 1/float32(batch))
				tape.Backward()
				for _, s := range states {
					s.Running.Update(nil)
				}
			}
			b.ReportMetric(float64(batch*b.N)/b.Elapsed().Seconds(), "samples/s")
			b.ReportMetric(float64(tape.Arena().Peak())/(1<<20), "MiB")
		})
	}
}
