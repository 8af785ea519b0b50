package nn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

// oracle is a function that Gorgonia can compute as well. Its inputs stand for
// parameters, too: params says which of them are bound to which parameter.
type oracle struct {
	name   string
	layer  nn.Layer // nil without parameters
	in     []nn.Shape
	ours   func(t *nn.Tape, x []*nn.Var) *nn.Var
	theirs func(x, params []*G.Node) *G.Node
	fill   func(string, []float32)
	noGrad bool // Gorgonia's own gradient is wrong
}

// TestGorgoniaAgrees compares values and all gradients. Both compute in
// float32, in another order: rms(a - b) <= 1e-5 rms(b) is some 80 units in the
// last place, for sums of up to 50 products.
func TestGorgoniaAgrees(t *testing.T) {
	for _, dev := range devices() {
		for _, o := range append(oracles(), sequenceOracles()...) {
			t.Run(dev.Name()+"/"+o.name, func(t *testing.T) { o.check(t, dev) })
		}
	}
}

func (o oracle) check(t *testing.T, dev device.Device) {
	if o.fill == nil {
		o.fill = nntest.Eighths
	}
	graph := G.NewGraph()
	node := func(name string, shape []int, v []float32) *G.Node {
		backing := append([]float32(nil), v...)
		return G.NewTensor(graph, tensor.Float32, len(shape), G.WithShape(shape...), G.WithName(name),
			G.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(backing))))
	}
	tape := nn.NewTape(dev)
	tape.Begin(nn.Pass{Training: true})
	var vars []*nn.Var
	var inputs, params []*G.Node
	for i, s := range o.in {
		v := make([]float32, s.Rows()*s.Features())
		o.fill(fmt.Sprint("oracle", i), v)
		vars = append(vars, tape.Input(nntest.Pack(s, v), s, true))
		inputs = append(inputs, node(fmt.Sprint("input", i), s.Dims[:s.Rank], v))
	}
	var owned []*nn.Param
	if o.layer != nil {
		materialize(t, dev, o.layer)
		owned = o.layer.Params()
	}
	for _, p := range owned {
		o.fill(p.Name, p.Value.F32())
		p.ZeroGrad()
		shape := p.Shape
		if len(shape) == 1 { // Gorgonia broadcasts a matrix of one row
			shape = []int{1, shape[0]}
		}
		params = append(params, node(p.Name, shape, p.Value.F32()))
	}

	y, out := o.ours(tape, vars), o.theirs(inputs, params)
	values, cost := []float32(nil), out
	if y.IsLoss() {
		tape.SeedLoss(y, 1)
	} else {
		values = nntest.Unpack(y.Shape, y.Value)
		weights := make([]float32, len(values))
		nntest.Eighths("weights", weights)
		tape.SeedGrad(y, nntest.Pack(y.Shape, weights))
		cost = G.Must(G.Sum(G.Must(G.HadamardProd(out, node("weights", out.Shape(), weights)))))
	}
	var result G.Value
	G.Read(out, &result)
	tape.Backward()

	all := append(append([]*G.Node(nil), inputs...), params...)
	_, err := G.Grad(cost, all...)
	require.NoError(t, err)
	machine := G.NewTapeMachine(graph, G.BindDualValues(all...))
	defer machine.Close()
	require.NoError(t, machine.RunAll())

	if y.IsLoss() {
		require.InEpsilon(t, result.Data(), y.Score().Sum(), 1e-6)
	} else {
		requireNear(t, "value", result, values)
	}
	if o.noGrad {
		return
	}
	for i, v := range vars {
		g, err := inputs[i].Grad()
		require.NoError(t, err)
		requireNear(t, fmt.Sprint("gradient of input ", i), g, nntest.Unpack(v.Shape, v.Grad()))
	}
	for i, p := range owned {
		want, err := params[i].Grad()
		require.NoError(t, err)
		g, _ := p.Grad(0)
		requireNear(t, "gradient of "+p.Name, want, g.F32())
	}
}

func requireNear(t *testing.T, what string, want G.Value, got []float32) {
	t.Helper()
	w := want.Data().([]float32)
	require.Len(t, got, len(w), what)
	var errors, total float64
	for i := range w {
		errors += math.Pow(float64(got[i])-float64(w[i]), 2)
		total += math.Pow(float64(w[i]), 2)
	}
	require.LessOrEqual(t, math.Sqrt(errors), 1e-5*math.Sqrt(total), "%s: %v, Gorgonia has %v", what, got, w)
}

func oracles() []oracle {
	type vars = []*nn.Var
	type nodes = []*G.Node
	fc := nn.NewLinear("fc", 5, 3, nn.LinearConfig{})
	matmul := func(x, p nodes) *G.Node {
		product := G.Must(G.Mul(x[0], G.Must(G.Transpose(p[0], 1, 0))))
		return G.Must(G.BroadcastAdd(product, p[1], nil, []byte{0}))
	}
	conv := func(kernel nn.Extent, c nn.ConvConfig) oracle {
		l := nn.NewConv2d("conv", 2, 3, kernel, c)
		stride := c.Stride
		if stride == (nn.Extent{}) {
			stride = nn.Square(1)
		}
		return oracle{name: fmt.Sprint("conv ", kernel, c), layer: l, in: []nn.Shape{nn.Image(2, 2, 6, 6)},
			ours: func(t *nn.Tape, x vars) *nn.Var { return l.Forward(t, x[0]) },
			theirs: func(x, p nodes) *G.Node {
				return G.Must(G.Conv2d(x[0], p[0], tensor.Shape{kernel.H, kernel.W},
					[]int{c.Padding.H, c.Padding.W}, []int{stride.H, stride.W}, []int{1, 1}))
			}}
	}
	single := func(name string, s nn.Shape, l nn.Layer, f func(x *G.Node) (*G.Node, error)) oracle {
		return oracle{name: name, in: []nn.Shape{s}, fill: nntest.Spaced,
			ours:   func(t *nn.Tape, x vars) *nn.Var { return l.Forward(t, x[0]) },
			theirs: func(x, _ nodes) *G.Node { return G.Must(f(x[0])) }}
	}
	image := nn.Image(2, 3, 4, 4)
	average := single("average pool", image, nn.NewAvgPool2d("p", nn.PoolConfig{Window: nn.Square(2)}), func(x *G.Node) (*G.Node, error) {
		return G.AveragePool2D(x, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2})
	})
	norm := nn.NewBatchNorm2d("bn", 3, nn.BatchNormConfig{})
	average.noGrad = true // zero for most pixels in v0.9.18
	return []oracle{
		{name: "linear", layer: fc, in: []nn.Shape{nn.Plain(4, 5)}, theirs: matmul,
			ours: func(t *nn.Tape, x vars) *nn.Var { return fc.Forward(t, x[0]) }},
		{name: "linear, tanh", layer: fc, in: []nn.Shape{nn.Plain(4, 5)},
			ours:   func(t *nn.Tape, x vars) *nn.Var { return t.Activate(device.Tanh, fc.Forward(t, x[0])) },
			theirs: func(x, p nodes) *G.Node { return G.Must(G.Tanh(matmul(x, p))) }},
		conv(nn.Square(3), nn.ConvConfig{Padding: nn.Square(1)}),
		conv(nn.Square(2), nn.ConvConfig{Stride: nn.Square(2)}),
		conv(nn.Square(1), nn.ConvConfig{}),
		single("relu", image, nn.ReLU{}, G.Rectify),
		single("sigmoid", image, nn.Sigmoid{}, G.Sigmoid),
		single("max pool", image, nn.NewMaxPool2d("p", nn.PoolConfig{Window: nn.Square(2)}), func(x *G.Node) (*G.Node, error) {
			return G.MaxPool2D(x, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2})
		}),
		single("global average", image, nn.GlobalAvgPool{}, func(x *G.Node) (*G.Node, error) {
			return G.Mean(G.Must(G.Reshape(x, tensor.Shape{2, 3, 16})), 2)
		}),
		single("flatten", image, nn.Flatten{}, func(x *G.Node) (*G.Node, error) { return G.Reshape(x, tensor.Shape{2, 48}) }),
		{name: "add", in: []nn.Shape{image, image},
			ours:   func(t *nn.Tape, x vars) *nn.Var { return t.Add("sum", x[0], x[1]) },
			theirs: func(x, _ nodes) *G.Node { return G.Must(G.Add(x[0], x[1])) }},
		{name: "concat", in: []nn.Shape{image, nn.Image(2, 2, 4, 4)},
			ours:   func(t *nn.Tape, x vars) *nn.Var { return t.Concat("cat", x...) },
			theirs: func(x, _ nodes) *G.Node { return G.Must(G.Concat(1, x...)) }},
		average,
		{name: "batch norm", layer: norm, in: []nn.Shape{image},
			ours: func(t *nn.Tape, x vars) *nn.Var { return norm.Forward(t, x[0]) },
			theirs: func(x, p nodes) *G.Node {
				channels := tensor.Shape{1, 3, 1, 1}
				y, _, _, _, err := G.BatchNorm(x[0], G.Must(G.Reshape(p[0], channels)), G.Must(G.Reshape(p[1], channels)), 0.1, 1e-5)
				if err != nil {
					panic(err)
				}
				return y
			}},
		{name: "cross-entropy", in: []nn.Shape{nn.Plain(4, 3)},
			ours: func(t *nn.Tape, x vars) *nn.Var {
				return t.CrossEntropy(x[0], device.FromI32([]int32{2, 0, 1, 1}), nn.CrossEntropyConfig{})
			},
			theirs: func(x, _ nodes) *G.Node {
				target := G.NewConstant(tensor.New(tensor.WithShape(4, 3), tensor.WithBacking([]float32{0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0})))
				return G.Must(G.Neg(G.Must(G.Sum(G.Must(G.HadamardProd(target, G.Must(G.Log(G.Must(G.SoftMax(x[0]))))))))))
			}},
		{name: "mean squared error", in: []nn.Shape{nn.Plain(2, 3)},
			ours: func(t *nn.Tape, x vars) *nn.Var {
				return t.MeanSquaredError(x[0], device.FromF32([]float32{1, 2, 3, 4, 5, 6}))
			},
			theirs: func(x, _ nodes) *G.Node {
				target := G.NewConstant(tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]float32{1, 2, 3, 4, 5, 6})))
				sum := G.Must(G.Sum(G.Must(G.Square(G.Must(G.Sub(x[0], target))))))
				return G.Must(G.HadamardProd(sum, G.NewConstant(float32(1.0/3))))
			}},
	}
}
