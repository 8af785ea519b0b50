package nn_test

import (
	"strings"
	"testing"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

// row is an operation under test: to add one, add a row.
type row struct {
	name  string
	build func() nntest.Case
}

// devices are what the tests run on.
func devices() []device.Device {
	all := []device.Device{naive.New()}
	for _, kernels := range []string{"portable", "auto"} {
		d, err := cpu.New(cpu.Config{Kernels: kernels})
		if err != nil {
			panic(err)
		}
		all = append(all, d)
	}
	return all
}

func rows() []row {
	var all []row
	for _, r := range [][]row{linearRows(), convRows(), normRows(), activationRows(), poolRows(), shapeRows(), lossRows(), sequenceRows()} {
		all = append(all, r...)
	}
	return all
}

// TestOps: gradients against central differences, split backward, reuse over
// poisoned memory, frozen parameters, a parameter used twice.
func TestOps(t *testing.T) {
	for _, dev := range devices() {
		for _, r := range rows() {
			t.Run(dev.Name()+"/"+r.name, func(t *testing.T) { nntest.Check(t, dev, r.build) })
		}
	}
}

// of is a case of one layer on one input.
func of(l nn.Layer, in nn.Shape, fill func(string, []float32)) nntest.Case {
	return nntest.Case{Layers: []nn.Layer{l}, Inputs: []nn.Shape{in}, Fill: fill,
		Apply: func(t *nn.Tape, x []*nn.Var) *nn.Var { return l.Forward(t, x[0]) }}
}

// on is a case of an operation without parameters.
func on(apply func(t *nn.Tape, x []*nn.Var) *nn.Var, fill func(string, []float32), in ...nn.Shape) nntest.Case {
	return nntest.Case{Inputs: in, Fill: fill, Apply: apply}
}

func linearRows() []row {
	return []row{
		{"linear", func() nntest.Case {
			return of(nn.NewLinear("fc", 5, 3, nn.LinearConfig{}), nn.Plain(4, 5), nil)
		}},
		{"linear without bias, one row", func() nntest.Case {
			return of(nn.NewLinear("fc", 3, 17, nn.LinearConfig{NoBias: true}), nn.Plain(1, 3), nil)
		}},
	}
}

func convRows() []row {
	conv := func(in nn.Shape, out int, kernel nn.Extent, c nn.ConvConfig) func() nntest.Case {
		return func() nntest.Case {
			return of(nn.NewConv2d("conv", in.Dims[1], out, kernel, c), in, nil)
		}
	}
	return []row{
		{"conv 3x3 plain input", conv(nn.Plain(2, 3, 5, 4), 2, nn.Square(3), nn.ConvConfig{Padding: nn.Square(1), Bias: true})},
		{"conv 3x3", conv(nn.Image(2, 2, 4, 5), 3, nn.Square(3), nn.ConvConfig{Padding: nn.Square(1)})},
		{"conv 17 to 18 channels", conv(nn.Image(1, 17, 3, 2), 18, nn.Square(1), nn.ConvConfig{Bias: true})},
		{"conv stride", conv(nn.Image(2, 2, 6, 5), 2, nn.Square(3), nn.ConvConfig{Stride: nn.Square(2), Padding: nn.Square(1)})},
		{"conv 1x1 stride", conv(nn.Image(1, 3, 5, 5), 2, nn.Square(1), nn.ConvConfig{Stride: nn.Square(2)})},
		{"conv 7x7 stride plain input", conv(nn.Plain(1, 1, 9, 8), 2, nn.Square(7), nn.ConvConfig{Stride: nn.Square(2), Padding: nn.Square(3)})},
		{"conv rectangular", conv(nn.Image(2, 2, 5, 6), 2, nn.Extent{H: 1, W: 4}, nn.ConvConfig{Stride: nn.Extent{H: 2, W: 1}, Padding: nn.Extent{H: 0, W: 2}, Bias: true})},
		{"conv dilated", conv(nn.Image(2, 2, 7, 6), 2, nn.Square(3), nn.ConvConfig{Padding: nn.Square(2), Dilation: nn.Extent{H: 2, W: 1}})},
		{"conv in groups", conv(nn.Image(2, 4, 4, 3), 6, nn.Square(3), nn.ConvConfig{Padding: nn.Square(1), Groups: 2, Bias: true})},
		{"conv depthwise", conv(nn.Image(2, 3, 5, 4), 3, nn.Square(3), nn.ConvConfig{Stride: nn.Square(2), Padding: nn.Square(1), Groups: 3})},
		{"conv as large as the image", conv(nn.Image(2, 2, 3, 2), 2, nn.Extent{H: 3, W: 2}, nn.ConvConfig{})},
	}
}

// away keeps the sums before a ReLU away from zero: what normalises at most 24
// values lies within 5 of the shift, scaled by 1/2 at most, and residuals are
// +-4.
func away(name string, out []float32) {
	nntest.Eighths(name, out)
	for i := range out {
		switch {
		case strings.HasSuffix(name, ".weight"):
			out[i] /= 2
		case name == "input1":
			out[i] = 4
			if i*7%5 < 2 {
				out[i] = -4
			}
		}
	}
}

func norm(in nn.Shape, residual bool, act device.Activation, change func(l *nn.BatchNorm2d)) func() nntest.Case {
	return func() nntest.Case {
		l := nn.NewBatchNorm2d("bn", in.Dims[1], nn.BatchNormConfig{})
		if change != nil {
			change(l)
		}
		c := nntest.Case{Layers: []nn.Layer{l}, Inputs: []nn.Shape{in}, Fill: away}
		if residual {
			c.Inputs = append(c.Inputs, in)
		}
		c.Apply = func(t *nn.Tape, x []*nn.Var) *nn.Var {
			if residual {
				return l.Fused(t, x[0], x[1], act)
			}
			return l.Fused(t, x[0], nil, act)
		}
		return c
	}
}

func normRows() []row {
	itself := func() nntest.Case {
		l := nn.NewBatchNorm2d("bn", 2, nn.BatchNormConfig{})
		c := of(l, nn.Image(2, 2, 2, 3), away)
		c.Apply = func(t *nn.Tape, x []*nn.Var) *nn.Var { return l.Fused(t, x[0], x[0], device.Identity) }
		return c
	}
	return []row{
		{"batch norm", norm(nn.Image(2, 3, 2, 3), false, device.Identity, nil)},
		{"batch norm of 17 channels", norm(nn.Image(3, 17, 1, 2), false, device.Identity, nil)},
		{"batch norm of a matrix", norm(nn.Plain(7, 3), false, device.Identity, nil)},
		{"batch norm + residual", norm(nn.Image(2, 3, 2, 3), true, device.Identity, nil)},
		{"batch norm + residual, ReLU", norm(nn.Image(2, 3, 3, 2), true, device.ReLU, nil)},
		{"batch norm + itself", itself},
		{"batch norm of one value", norm(nn.Image(1, 3, 1, 1), true, device.ReLU, nil)},
	}
}

func activationRows() []row {
	var rows []row
	for name, l := range map[string]nn.Layer{"relu": nn.ReLU{}, "tanh": nn.Tanh{}, "sigmoid": nn.Sigmoid{},
		"gelu": nn.GELU{}, "gelu by tanh": nn.GELU{Tanh: true}, "silu": nn.SiLU{}} {
		fill := nntest.Eighths
		if name == "relu" {
			fill = nntest.Spaced
		}
		rows = append(rows,
			row{name + " of images", func() nntest.Case { return of(l, nn.Image(2, 3, 2, 2), fill) }},
			row{name + " of a matrix", func() nntest.Case { return of(l, nn.Plain(3, 5), fill) }})
	}
	dropout := func() nntest.Case {
		c := of(nn.Dropout{Name: "drop", P: 0.4}, nn.Image(2, 3, 4, 2), nil)
		c.Random = true
		return c
	}
	both := func() nntest.Case {
		c := on(func(t *nn.Tape, x []*nn.Var) *nn.Var {
			return t.Add("sum", t.Dropout("a", x[0], 0.5), t.Dropout("b", x[0], 0.5))
		}, nil, nn.Plain(5, 4))
		c.Random = true
		return c
	}
	return append(rows, row{"dropout", dropout}, row{"two dropouts of one input", both})
}

func poolRows() []row {
	pool := func(l nn.Layer, in nn.Shape) func() nntest.Case {
		return func() nntest.Case { return of(l, in, nntest.Spaced) }
	}
	over := nn.PoolConfig{Window: nn.Square(3), Stride: nn.Square(2), Padding: nn.Square(1)}
	counted := over
	counted.CountPadding = true
	return []row{
		{"max pool 2x2", pool(nn.NewMaxPool2d("pool", nn.PoolConfig{Window: nn.Square(2)}), nn.Image(2, 3, 4, 5))},
		{"max pool overlapping", pool(nn.NewMaxPool2d("pool", over), nn.Image(2, 3, 5, 6))},
		{"average pool 2x3", pool(nn.NewAvgPool2d("pool", nn.PoolConfig{Window: nn.Extent{H: 2, W: 3}}), nn.Image(2, 3, 4, 6))},
		{"average pool overlapping", pool(nn.NewAvgPool2d("pool", over), nn.Image(1, 3, 5, 6))},
		{"average pool that counts padding", pool(nn.NewAvgPool2d("pool", counted), nn.Image(1, 3, 5, 6))},
		{"average pool that subsamples", pool(nn.NewAvgPool2d("pool", nn.PoolConfig{Window: nn.Square(1), Stride: nn.Square(2)}), nn.Image(1, 3, 5, 6))},
		{"global average", pool(nn.GlobalAvgPool{Name: "pool"}, nn.Image(2, 3, 3, 4))},
		{"global average of 17 channels", pool(nn.GlobalAvgPool{Name: "pool"}, nn.Image(2, 17, 1, 2))},
	}
}

func shapeRows() []row {
	type vars = []*nn.Var
	return []row{
		{"add", func() nntest.Case {
			return on(func(t *nn.Tape, x vars) *nn.Var { return t.Add("sum", x[0], x[1]) }, nil, nn.Image(2, 3, 2, 2), nn.Image(2, 3, 2, 2))
		}},
		{"add to itself", func() nntest.Case {
			return on(func(t *nn.Tape, x vars) *nn.Var { return t.Add("sum", x[0], x[0]) }, nil, nn.Plain(2, 3))
		}},
		{"concat of images", func() nntest.Case {
			return on(func(t *nn.Tape, x vars) *nn.Var { return t.Concat("cat", x...) }, nil,
				nn.Image(2, 3, 2, 2), nn.Image(2, 17, 2, 2), nn.Image(2, 1, 2, 2))
		}},
		{"concat of matrices", func() nntest.Case {
			return on(func(t *nn.Tape, x vars) *nn.Var { return t.Concat("cat", x[0], x[1], x[0]) }, nil, nn.Plain(3, 2), nn.Plain(3, 4))
		}},
		{"pad channels", func() nntest.Case {
			return on(func(t *nn.Tape, x vars) *nn.Var { return t.PadChannels("pad", x[0], 20) }, nil, nn.Image(2, 3, 2, 2))
		}},
		{"flatten of images", func() nntest.Case { return of(nn.Flatten{Name: "flat"}, nn.Image(2, 3, 2, 3), nil) }},
		{"flatten of plain images", func() nntest.Case { return of(nn.Flatten{Name: "flat"}, nn.Plain(2, 3, 2, 3), nil) }},
		{"reshape", func() nntest.Case {
			return on(func(t *nn.Tape, x vars) *nn.Var {
				y := t.Reshape("shape", x[0], 4, 6)
				return t.Add("sum", t.Activate(device.Tanh, y), t.Reshape("shape", t.Reshape("shape", x[0], 24), 4, 6))
			}, nil, nn.Image(2, 3, 2, 2))
		}},
		{"reorder there and back", func() nntest.Case {
			return on(func(t *nn.Tape, x vars) *nn.Var {
				y := t.Reorder("order", x[0], device.Blocked16)
				return t.Reorder("order", t.Add("sum", y, y), device.Plain)
			}, nil, nn.Plain(2, 3, 2, 2))
		}},
	}
}

func lossRows() []row {
	labels := device.FromI32([]int32{2, 0, -1, 3})
	cross := func(c nn.CrossEntropyConfig) func() nntest.Case {
		return func() nntest.Case {
			return on(func(t *nn.Tape, x []*nn.Var) *nn.Var { return t.CrossEntropy(x[0], labels, c) }, nil, nn.Plain(4, 5))
		}
	}
	target := make([]float32, 12)
	nntest.Eighths("target", target)
	return []row{
		{"cross-entropy, ignored row", cross(nn.CrossEntropyConfig{Ignore: -1, HasIgnore: true})},
		{"cross-entropy, smoothed", cross(nn.CrossEntropyConfig{Ignore: -1, HasIgnore: true, Smoothing: 0.2})},
		{"mean squared error", func() nntest.Case {
			return on(func(t *nn.Tape, x []*nn.Var) *nn.Var {
				return t.MeanSquaredError(x[0], device.FromF32(target))
			}, nil, nn.Plain(3, 4))
		}},
	}
}
