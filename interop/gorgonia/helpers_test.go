package gorgonia

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"

	G "gorgonia.org/gorgonia"
)

const steps = 12

// The model of these tests: a matrix and a bias.
var shapes = [][]int{{3, 4}, {5}}

func startAt(i int) float32 { return float32((5*i)%7-3) / 4 }

func gradientAt(step, i int) float32 { return float32((7*step+3*i)%11-5) / 8 }

func rate(step int) float32 { return 0.5 / float32(step) }

// foreign is a ValueGrad that is no node and no parameter of ours.
type foreign struct {
	value, grad *tensor.Dense
}

func (f *foreign) Value() G.Value         { return f.value }
func (f *foreign) Grad() (G.Value, error) { return f.grad, nil }

func foreignModel() []G.ValueGrad {
	var out []G.ValueGrad
	for _, shape := range shapes {
		f := &foreign{
			value: tensor.New(tensor.WithShape(shape...), tensor.Of(tensor.Float32)),
			grad:  tensor.New(tensor.WithShape(shape...), tensor.Of(tensor.Float32)),
		}
		for i := range f.value.Float32s() {
			f.value.Float32s()[i] = startAt(i)
		}
		out = append(out, f)
	}
	return out
}

func ourModel(t *testing.T) []optim.Segment {
	t.Helper()
	var out []optim.Segment
	for i, shape := range shapes {
		p := &nn.Param{Name: []string{"weight", "bias"}[i], Shape: shape, Decay: i == 0}
		value, err := naive.New().Alloc(device.F32, p.Len())
		require.NoError(t, err)
		p.Value = value
		for k := range value.F32() {
			value.F32()[k] = startAt(k)
		}
		out = append(out, optim.Segment{Param: p, Hi: p.Len(), Grad: device.FromF32(make([]float32, p.Len()))})
	}
	return out
}

func fillGradient(grad []float32, step int, times float32) {
	for i := range grad {
		grad[i] = gradientAt(step, i) * times
	}
}
