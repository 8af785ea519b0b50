package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

// The twins: each operation once more, as plainly as it can be written, over
// row-major float64. Inputs are multiples of 1/8 below 1, so that sums of
// products are exact and the comparison is equality; where the function is not
// exact the row says how far off it may be.

type array struct {
	s nn.Shape
	v []float64
}

// at reads an image; outside of it there are zeros.
func (a array) at(n, c, y, x int) float64 {
	d := a.s.Dims
	if y < 0 || y >= d[2] || x < 0 || x >= d[3] {
		return 0
	}
	return a.v[((n*d[1]+c)*d[2]+y)*d[3]+x]
}

// each calls f with the indices of an output of shape s, in order.
func each(s nn.Shape, f func(n, c, y, x int) float64) []float64 {
	var out []float64
	d := s.Dims
	for i := s.Rank; i < 4; i++ {
		d[i] = 1
	}
	for n := range d[0] {
		for c := range d[1] {
			for y := range d[2] {
				for x := range d[3] {
					out = append(out, f(n, c, y, x))
				}
			}
		}
	}
	return out
}

type twin struct {
	name  string
	layer nn.Layer
	in    []nn.Shape
	out   nn.Shape
	want  func(in []array, p [][]float64) func(n, c, y, x int) float64
	bound float64 // of the difference; 0: equal
}

func TestTwins(t *testing.T) {
	for _, dev := range devices() {
		for _, w := range append(twins(), sequenceTwins()...) {
			t.Run(dev.Name()+"/"+w.name, func(t *testing.T) { w.check(t, dev) })
		}
	}
}

func (w twin) check(t *testing.T, dev device.Device) {
	materialize(t, dev, w.layer)
	var params [][]float64
	for _, p := range w.layer.Params() {
		nntest.Eighths(p.Name, p.Value.F32())
		params = append(params, wide(p.Value.F32()))
	}
	tape := nn.NewTape(dev)
	tape.Begin(nn.Pass{Training: true})
	var in []array
	var vars []*nn.Var
	for i, s := range w.in {
		v := make([]float32, s.Rows()*s.Features())
		nntest.Eighths("twin"+string(rune('0'+i)), v)
		in = append(in, array{s, wide(v)})
		vars = append(vars, tape.Input(nntest.Pack(s, v), s, false))
	}
	var y *nn.Var
	if f, ok := w.layer.(many); ok {
		y = f(tape, vars)
	} else {
		y = w.layer.Forward(tape, vars[0])
	}
	require.Equal(t, w.out, y.Shape)
	got, want := wide(nntest.Unpack(y.Shape, y.Value)), each(w.out, w.want(in, params))
	if w.bound == 0 {
		require.Equal(t, want, got)
		return
	}
	require.InDeltaSlice(t, want, got, w.bound)
}

func wide(s []float32) []float64 {
	out := make([]float64, len(s))
	for i, v := range s {
		out[i] = float64(v)
	}
	return out
}

// many is a layer of several inputs.
type many func(t *nn.Tape, x []*nn.Var) *nn.Var

func (f many) Forward(t *nn.Tape, x *nn.Var) *nn.Var { return f(t, []*nn.Var{x}) }

func (many) Params() []*nn.Param { return nil }

func (many) State() []nn.State { return nil }

func twins() []twin {
	image, plain := nn.Image, nn.Plain
	type index = func(n, c, y, x int) float64
	rounded := 0x1p-22 // values below 2, a few roundings
	elementwise := func(name string, l nn.Layer, f func(float64) float64, bound float64) twin {
		return twin{name, l, []nn.Shape{image(2, 17, 2, 3)}, image(2, 17, 2, 3), func(in []array, _ [][]float64) index {
			return func(n, c, y, x int) float64 { return f(in[0].at(n, c, y, x)) }
		}, bound}
	}
	window := func(name string, l nn.Layer, in, out nn.Shape, k, stride, pad int, fold func(in []float64) float64, bound float64) twin {
		return twin{name, l, []nn.Shape{in}, out, func(a []array, _ [][]float64) index {
			return func(n, c, y, x int) float64 {
				var seen []float64
				for r := range k {
					for s := range k {
						iy, ix := y*stride+r-pad, x*stride+s-pad
						if iy >= 0 && iy < in.Dims[2] && ix >= 0 && ix < in.Dims[3] {
							seen = append(seen, a[0].at(n, c, iy, ix))
						}
					}
				}
				return fold(seen)
			}
		}, bound}
	}
	over := nn.PoolConfig{Window: nn.Square(3), Stride: nn.Square(2), Padding: nn.Square(1)}
	all := []twin{
		{"linear", nn.NewLinear("fc", 20, 7, nn.LinearConfig{}), []nn.Shape{plain(5, 20)}, plain(5, 7), func(in []array, p [][]float64) index {
			return func(n, c, _, _ int) float64 {
				sum := p[1][c]
				for k := range 20 {
					sum += in[0].v[n*20+k] * p[0][c*20+k]
				}
				return sum
			}
		}, 0},
		convTwin("conv plain", plain(2, 3, 7, 6), 5, nn.Extent{H: 3, W: 3}, nn.ConvConfig{Padding: nn.Square(1), Bias: true}),
		convTwin("conv", image(2, 17, 5, 6), 18, nn.Extent{H: 3, W: 3}, nn.ConvConfig{Padding: nn.Square(1)}),
		convTwin("conv stride", image(2, 16, 7, 9), 32, nn.Extent{H: 3, W: 3}, nn.ConvConfig{Stride: nn.Square(2), Padding: nn.Square(1)}),
		convTwin("conv rectangular", image(1, 5, 6, 7), 20, nn.Extent{H: 2, W: 5}, nn.ConvConfig{Stride: nn.Extent{H: 1, W: 2}, Padding: nn.Extent{H: 1, W: 2}, Bias: true}),
		convTwin("conv dilated in groups", image(2, 4, 9, 8), 6, nn.Square(3), nn.ConvConfig{Padding: nn.Square(1), Dilation: nn.Square(2), Groups: 2}),
		convTwin("conv depthwise", image(2, 17, 5, 6), 17, nn.Square(3), nn.ConvConfig{Padding: nn.Square(1), Groups: 17, Bias: true}),
		convTwin("conv 1x1", image(3, 32, 3, 3), 17, nn.Square(1), nn.ConvConfig{Stride: nn.Square(2)}),
		convTwin("conv 7x7 plain", plain(1, 3, 15, 14), 16, nn.Square(7), nn.ConvConfig{Stride: nn.Square(2), Padding: nn.Square(3)}),
		elementwise("relu", nn.ReLU{}, func(v float64) float64 { return math.Max(v, 0) }, 0),
		elementwise("tanh", nn.Tanh{}, math.Tanh, rounded),
		elementwise("sigmoid", nn.Sigmoid{}, func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }, rounded),
		window("max pool", nn.NewMaxPool2d("p", over), image(2, 17, 6, 5), image(2, 17, 3, 3), 3, 2, 1, largest, 0),
		window("average pool", nn.NewAvgPool2d("p", over), image(2, 17, 6, 5), image(2, 17, 3, 3), 3, 2, 1, mean, rounded),
		window("average pool 2x2", nn.NewAvgPool2d("p", nn.PoolConfig{Window: nn.Square(2)}), image(2, 3, 5, 4), image(2, 3, 2, 2), 2, 2, 0, mean, 0),
		{"global average", nn.GlobalAvgPool{}, []nn.Shape{image(2, 17, 2, 4)}, plain(2, 17), func(in []array, _ [][]float64) index {
			return func(n, c, _, _ int) float64 { return mean(in[0].v[(n*17+c)*8 : (n*17+c+1)*8]) }
		}, 0},
		{"add", many(func(t *nn.Tape, x []*nn.Var) *nn.Var { return t.Add("sum", x[0], x[1]) }),
			[]nn.Shape{image(2, 5, 2, 2), image(2, 5, 2, 2)}, image(2, 5, 2, 2), func(in []array, _ [][]float64) index {
				return func(n, c, y, x int) float64 { return in[0].at(n, c, y, x) + in[1].at(n, c, y, x) }
			}, 0},
		{"concat", many(func(t *nn.Tape, x []*nn.Var) *nn.Var { return t.Concat("cat", x...) }),
			[]nn.Shape{image(2, 5, 2, 2), image(2, 16, 2, 2)}, image(2, 21, 2, 2), func(in []array, _ [][]float64) index {
				return func(n, c, y, x int) float64 {
					if c < 5 {
						return in[0].at(n, c, y, x)
					}
					return in[1].at(n, c-5, y, x)
				}
			}, 0},
		{"pad channels", many(func(t *nn.Tape, x []*nn.Var) *nn.Var { return t.PadChannels("pad", x[0], 20) }),
			[]nn.Shape{image(2, 5, 2, 2)}, image(2, 20, 2, 2), func(in []array, _ [][]float64) index {
				return func(n, c, y, x int) float64 {
					if c < 5 {
						return in[0].at(n, c, y, x)
					}
					return 0
				}
			}, 0},
		{"flatten", nn.Flatten{}, []nn.Shape{image(3, 17, 2, 2)}, plain(3, 68), func(in []array, _ [][]float64) index {
			return func(n, c, _, _ int) float64 { return in[0].v[n*68+c] }
		}, 0},
		normTwin(image(2, 17, 3, 2)),
		normTwin(plain(6, 5)),
	}
	return all
}

func largest(v []float64) float64 {
	most := math.Inf(-1)
	for _, x := range v {
		most = math.Max(most, x)
	}
	return most
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func convTwin(name string, in nn.Shape, out int, k nn.Extent, c nn.ConvConfig) twin {
	stride := c.Stride
	if stride == (nn.Extent{}) {
		stride = nn.Square(1)
	}
	dilation := c.Dilation
	if dilation == (nn.Extent{}) {
		dilation = nn.Square(1)
	}
	groups := max(1, c.Groups)
	channels := in.Dims[1] / groups // of a group
	oh := (in.Dims[2]+2*c.Padding.H-(k.H-1)*dilation.H-1)/stride.H + 1
	ow := (in.Dims[3]+2*c.Padding.W-(k.W-1)*dilation.W-1)/stride.W + 1
	return twin{name, nn.NewConv2d("conv", in.Dims[1], out, k, c), []nn.Shape{in}, nn.Image(in.Dims[0], out, oh, ow),
		func(a []array, p [][]float64) func(n, c, y, x int) float64 {
			return func(n, o, y, x int) float64 {
				sum := 0.0
				if c.Bias {
					sum = p[1][o]
				}
				for i := range channels {
					for r := range k.H {
						for s := range k.W {
							w := p[0][((o*channels+i)*k.H+r)*k.W+s]
							sum += w * a[0].at(n, o/(out/groups)*channels+i, y*stride.H+r*dilation.H-c.Padding.H, x*stride.W+s*dilation.W-c.Padding.W)
						}
					}
				}
				return sum
			}
		}, 0}
}

func normTwin(s nn.Shape) twin {
	channels := s.Dims[1]
	pixels := s.Features() / channels
	return twin{"batch norm of " + s.String(), nn.NewBatchNorm2d("bn", channels, nn.BatchNormConfig{}), []nn.Shape{s}, s,
		func(in []array, p [][]float64) func(n, c, y, x int) float64 {
			return func(n, c, y, x int) float64 {
				var values []float64
				for i := range s.Rows() {
					values = append(values, in[0].v[(i*channels+c)*pixels:(i*channels+c+1)*pixels]...)
				}
				m, variance := mean(values), 0.0
				for _, v := range values {
					variance += (v - m) * (v - m) / float64(len(values))
				}
				w := 1
				if s.Rank == 4 {
					w = s.Dims[3]
				}
				v := in[0].v[(n*channels+c)*pixels+y*w+x]
				return p[0][c]*(v-m)/math.Sqrt(variance+1e-5) + p[1][c]
			}
		}, 0x1p-20} // values up to 3 after a subtraction, a product and a sum
}
