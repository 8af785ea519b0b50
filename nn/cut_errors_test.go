package nn_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
)

// failing partners never get a sum.
type failing struct{ alone }

var errDied = errors.New("rank 1 died")

func (failing) Start(device.ReduceOp, device.Buf, string) nn.Pending { return failed{} }

type failed struct{}

func (failed) Wait() error { return errDied }

// caught runs f on a tape and returns the error that it panics with.
func caught(f func(t *nn.Tape)) (err error) {
	defer nn.Catch(&err)
	tape := nn.NewTape(naive.New())
	tape.Begin(nn.Pass{Training: true})
	f(tape)
	return nil
}

// ready gives a layer memory.
func ready(l nn.Layer) nn.Layer {
	if err := nn.Materialize(naive.New(), []nn.Block{nn.NewSeq("block", l)}, 1); err != nil {
		panic(err)
	}
	return l
}

// matrix is two rows of n features.
func matrix(t *nn.Tape, n int) *nn.Var {
	return t.Input(device.FromF32(make([]float32, 2*n)), nn.Plain(2, n), true)
}

func TestCutErrors(t *testing.T) {
	p := failing{alone{0, 2}}
	cut, rows := nn.Cut{Partners: p}, nn.Cut{Partners: p, Inputs: true}
	tokens := func(t *nn.Tape, ids ...int32) *nn.Var {
		return t.Input(device.FromI32(ids), nn.Plain(1, len(ids)), false)
	}
	labels := device.FromI32([]int32{0, 5})
	for want, f := range map[string]func(*nn.Tape){
		"fc (cut): 3 units of 1 features are too few for 4 partners": func(*nn.Tape) {
			nn.NewLinear("fc", 2, 3, nn.LinearConfig{Cut: nn.Cut{Partners: alone{0, 4}}})
		},
		"fc (cut): 10 features are not 3 groups of units of 2": func(*nn.Tape) {
			nn.NewLinear("fc", 2, 10, nn.LinearConfig{Cut: nn.Cut{Partners: p, Groups: 3, Unit: 2}})
		},
		"fc (cut): the weight of shape 2 x 3 is not a part along dimension 1": func(t *nn.Tape) {
			l := ready(nn.NewLinear("fc", 3, 4, nn.LinearConfig{Cut: cut})).(*nn.Linear)
			t.RowLinear(matrix(t, 3), l.Weight, nil, p)
		},
		"fc (sum of the partners' outputs): rank 1 died": func(t *nn.Tape) {
			ready(nn.NewLinear("fc", 4, 3, nn.LinearConfig{Cut: rows})).Forward(t, matrix(t, 2))
		},
		"fc (sum of the partners' gradients): rank 1 died": func(t *nn.Tape) {
			y := ready(nn.NewLinear("fc", 4, 3, nn.LinearConfig{Cut: cut})).Forward(t, matrix(t, 4))
			t.SeedGrad(y, device.FromF32(make([]float32, y.Shape.Len())))
			t.Backward()
		},
		"loss (exchange of the partners' softmax): rank 1 died": func(t *nn.Tape) {
			t.CrossEntropy(ready(nn.NewLinear("fc", 4, 6, nn.LinearConfig{Cut: cut})).Forward(t, matrix(t, 4)), labels, nn.CrossEntropyConfig{})
		},
		"mean squared error: the features of the input are cut over partners, and this loss takes whole ones": func(t *nn.Tape) {
			t.MeanSquaredError(ready(nn.NewLinear("fc", 4, 6, nn.LinearConfig{Cut: cut})).Forward(t, matrix(t, 4)), device.FromF32(make([]float32, 6)))
		},
		"wte (embedding): token 1 of sequence 0 is 7, outside of 0..6": func(t *nn.Tape) {
			ready(nn.NewCutEmbedding("wte", 7, 3, p)).Forward(t, tokens(t, 1, 7))
		},
		"wte (sum of the partners' vectors): rank 1 died": func(t *nn.Tape) {
			ready(nn.NewCutEmbedding("wte", 7, 3, p)).Forward(t, tokens(t, 1, 2))
		},
		"drop (dropout): input of shape 2 x 4, want rows x 2, which is this partner's part": func(t *nn.Tape) {
			nn.Dropout{Name: "drop", P: 0.5, Part: nn.NewLinear("fc", 3, 4, nn.LinearConfig{Cut: cut}).OutputPart()}.Forward(t, matrix(t, 4))
		},
	} {
		require.EqualError(t, caught(f), want)
	}
}

func TestCutErrorsHaveTypes(t *testing.T) {
	p := failing{alone{0, 2}}
	var partner *nn.PartnerError
	err := caught(func(t *nn.Tape) {
		ready(nn.NewLinear("fc", 4, 3, nn.LinearConfig{Cut: nn.Cut{Partners: p, Inputs: true}})).Forward(t, matrix(t, 2))
	})
	require.ErrorAs(t, err, &partner)
	require.ErrorIs(t, err, errDied)
	var label *device.LabelError
	require.ErrorAs(t, caught(func(t *nn.Tape) {
		logits := ready(nn.NewLinear("fc", 4, 5, nn.LinearConfig{Cut: nn.Cut{Partners: p}})).Forward(t, matrix(t, 4))
		t.CrossEntropy(logits, device.FromI32([]int32{0, 5}), nn.CrossEntropyConfig{})
	}), &label)
	require.Equal(t, 5, label.Classes, "of the whole, not of the part")
}
