package nn_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

// cutLoss runs cross-entropy of given logits, which partners share: a Linear
// with the identity as weight makes them.
func cutLoss(dev device.Device, p nn.Partners, logits []float32, classes int, labels []int32, c nn.CrossEntropyConfig, to *nntest.Wholes) (err error) {
	defer nn.Catch(&err)
	l := nn.NewLinear("fc", classes, classes, nn.LinearConfig{NoBias: true, Cut: nn.Cut{Partners: p}})
	if err := nn.Materialize(dev, []nn.Block{nn.NewSeq("block", l)}, 1); err != nil {
		return err
	}
	clear(l.Weight.Value.F32())
	identity := make([]float32, classes*classes)
	for i := range classes {
		identity[i*classes+i] = 1
	}
	if copy(l.Weight.Value.F32(), identity); l.Weight.Part != nil {
		l.Weight.Part.Take(l.Weight.Value.F32(), identity)
	}
	tape := nn.NewTape(dev)
	tape.Begin(nn.Pass{Training: true})
	x := tape.Input(device.FromF32(logits), nn.Plain(len(labels), classes), true)
	loss := tape.CrossEntropy(l.Forward(tape, x), device.FromI32(labels), c)
	tape.SeedLoss(loss, 2)
	tape.Backward()
	to.Add("score", nil, []float32{float32(loss.Score().Sum()), float32(loss.Score().Correct()), float32(loss.Score().Count)})
	to.Add("gradient", nil, x.Grad().F32())
	return nil
}

// Ties, ignored rows, smoothing and large logits, against one rank.
func TestCutCrossEntropy(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 60 {
		rows, classes := 1+r.IntN(6), 5+r.IntN(8)
		logits, labels := make([]float32, rows*classes), make([]int32, rows)
		for i := range logits {
			logits[i] = float32(r.IntN(4)) * []float32{1, 30}[r.IntN(2)] // many ties
		}
		for i := range labels {
			labels[i] = int32(r.IntN(classes))
		}
		c := nn.CrossEntropyConfig{Smoothing: []float32{0, 0.2}[r.IntN(2)], Ignore: int32(r.IntN(classes)), HasIgnore: r.IntN(2) == 0}
		for _, dev := range devices() {
			var want nntest.Wholes
			require.NoError(t, cutLoss(dev, nil, logits, classes, labels, c, &want))
			for n := 2; n <= 5; n++ {
				var got nntest.Wholes
				require.NoError(t, nntest.Together(n, func(p nn.Partners) error {
					return cutLoss(naive.New(), p, logits, classes, labels, c, &got)
				}))
				require.NoError(t, got.Compare(&want, 1e-6), "%d partners, logits %v, labels %v, %+v, seed %d", n, logits, labels, c, seed) // exponentials are rounded
			}
		}
	}
}
