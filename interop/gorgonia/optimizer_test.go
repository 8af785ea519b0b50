package gorgonia

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

func nnParams(segments []optim.Segment) []*nn.Param {
	var out []*nn.Param
	for _, s := range segments {
		out = append(out, s.Param)
	}
	return out
}

// twin is one element in float64 under Gorgonia's own formulas, in which the
// velocity contains the learning rate of the step that added to it.
type twin struct{ w, velocity, mean, square float64 }

var solvers = []struct {
	name   string
	make   func() G.Solver
	update func(x *twin, step int, g, lr float64)
}{
	{"vanilla", func() G.Solver { return G.NewVanillaSolver() }, func(x *twin, _ int, g, lr float64) {
		x.w -= lr * g
	}},
	{"momentum", func() G.Solver { return G.NewMomentum(G.WithMomentum(0.75)) }, func(x *twin, _ int, g, lr float64) {
		x.velocity = 0.75*x.velocity - lr*g
		x.w += x.velocity
	}},
	{"adam", func() G.Solver { return G.NewAdamSolver() }, func(x *twin, step int, g, lr float64) {
		x.mean = 0.9*x.mean + 0.1*g
		x.square = 0.999*x.square + 0.001*g*g
		mean := x.mean / (1 - math.Pow(0.9, float64(step)))
		square := x.square / (1 - math.Pow(0.999, float64(step)))
		x.w -= lr * mean / (math.Sqrt(square) + 1e-8)
	}},
	{"rmsprop", func() G.Solver { return G.NewRMSPropSolver(G.WithRho(0.9)) }, func(x *twin, _ int, g, lr float64) {
		x.square = 0.9*x.square + 0.1*g*g
		x.w -= lr * g / math.Sqrt(x.square+1e-8)
	}},
}

// Gorgonia computes 1 - 0.999 in float32, which is wrong by 2^-24 / 0.001 = 6e-5
// of itself; the root of it makes 3e-5 of each of Adam's updates. Those are at
// most the rate, and the rates add up to 1.6. All other roundings are smaller.
const bound = 5e-5

func TestSolversInsideUpdateAsTheTwinDoes(t *testing.T) {
	for _, c := range solvers {
		o, err := NewOptimizer(c.make())
		require.NoError(t, err)
		segments := ourModel(t)
		require.NoError(t, o.Init(naive.New(), segments))
		twins := [2][]twin{make([]twin, segments[0].Hi), make([]twin, segments[1].Hi)}
		for i := range segments {
			for k := range twins[i] {
				twins[i][k].w = float64(startAt(k))
			}
		}
		for step := 1; step <= steps; step++ {
			for i, s := range segments {
				fillGradient(s.Grad.F32(), step, 4) // scale takes the 4 back, exactly
				for k := range twins[i] {
					c.update(&twins[i][k], step, float64(gradientAt(step, k)), float64(rate(step)))
				}
			}
			require.NoError(t, o.Update(step, segments, rate(step), 0.25))
			for i, s := range segments {
				for k, w := range s.Param.Value.F32() {
					require.InDelta(t, twins[i][k].w, w, bound, "%s: step %d, %s[%d]", c.name, step, s.Param.Name, k)
				}
			}
		}
	}
}

func TestOptimizerFollowsMovedMemory(t *testing.T) {
	o, err := NewOptimizer(G.NewVanillaSolver())
	require.NoError(t, err)
	segments := ourModel(t)
	require.NoError(t, o.Init(naive.New(), segments))
	require.NoError(t, o.Update(1, segments, 1, 1))
	p := segments[1].Param
	p.Value = device.FromF32(make([]float32, p.Len()))
	segments[1].Grad = device.FromF32([]float32{1, 2, 3, 4, 5})
	require.NoError(t, o.Update(2, segments, 0.5, 1))
	require.Equal(t, []float32{-0.5, -1, -1.5, -2, -2.5}, p.Value.F32())
}

func TestOptimizerRefuses(t *testing.T) {
	for want, solver := range map[string]G.Solver{
		"gorgonia: no solver": nil,
		"gorgonia: AdamW takes nodes of Gorgonia's graphs only and would panic":                     G.NewAdamW(),
		"gorgonia: AdaGradSolver ignores the learning rate":                                         G.NewAdaGradSolver(),
		"gorgonia: BarzilaiBorweinSolver computes its own learning rate":                            G.NewBarzilaiBorweinSolver(),
		"gorgonia: *gorgonia.deaf has no method SetLearnRate(float64), so no schedule can reach it": &deaf{},
	} {
		_, err := NewOptimizer(solver)
		require.ErrorContains(t, err, want)
	}

	o, err := NewOptimizer(G.NewAdamSolver())
	require.NoError(t, err)
	require.EqualError(t, o.State(nil), "gorgonia: the moments of *gorgonia.AdamSolver can be neither read nor written, so its state cannot be saved, resumed or moved: use an optimizer of package optim")
	p := &nn.Param{Name: "w", Shape: []int{300}, Value: device.FromF32(make([]float32, 300))}
	part := []optim.Segment{{Param: p, Lo: 128, Hi: 300, Grad: device.FromF32(make([]float32, 172))}}
	require.EqualError(t, o.Init(naive.New(), part), "gorgonia: *gorgonia.AdamSolver updates whole parameters, but w is cut to [128, 300): do not shard the optimizer")
	segments := ourModel(t)
	require.NoError(t, o.Init(naive.New(), segments))
	require.NoError(t, o.Update(1, segments, 1, 1))
	require.EqualError(t, o.Init(naive.New(), segments), "gorgonia: *gorgonia.AdamSolver has run already and its moments cannot be moved to other segments")
	require.Panics(t, func() { _ = o.Update(2, nil, 1, 1) })

	o, err = NewOptimizer(G.NewVanillaSolver())
	require.NoError(t, err)
	require.NoError(t, o.State(nil), "no state, nothing to refuse")
}

func TestOptimizerAndFrozenParameters(t *testing.T) {
	o, err := NewOptimizer(G.NewMomentum())
	require.NoError(t, err)
	segments := ourModel(t)
	require.NoError(t, o.Init(naive.New(), segments))
	require.NoError(t, o.Update(1, segments, 1, 1))
	segments[1].Param.Frozen = true
	require.ErrorContains(t, o.Update(2, segments, 1, 1), "would move bias by its moments")

	o, err = NewOptimizer(G.NewVanillaSolver())
	require.NoError(t, err)
	require.NoError(t, o.Init(naive.New(), segments))
	before := append([]float32(nil), segments[1].Param.Value.F32()...)
	require.NoError(t, o.Update(1, segments, 1, 1))
	require.Equal(t, before, segments[1].Param.Value.F32())
}

// deaf is a solver that no learning rate reaches.
type deaf struct{}

func (*deaf) Step([]G.ValueGrad) error { return nil }

// own is a solver of a user's; it fails as it is told.
type own struct {
	rate  float64
	fail  error
	panic bool
}

func (s *own) SetLearnRate(lr float64) { s.rate = lr }

func (s *own) Step([]G.ValueGrad) error {
	if s.panic {
		panic("shapes differ")
	}
	return s.fail
}

func TestOwnSolver(t *testing.T) {
	solver := &own{}
	o, err := NewOptimizer(solver)
	require.NoError(t, err)
	segments := ourModel(t)
	require.NoError(t, o.Init(naive.New(), segments))
	require.NoError(t, o.Update(1, segments, 0.25, 1))
	require.Equal(t, 0.25, solver.rate)
	solver.fail = errors.New("no luck")
	require.EqualError(t, o.Update(2, segments, 1, 1), "gorgonia: *gorgonia.own, step 2: no luck")
	solver.panic = true
	require.EqualError(t, o.Update(3, segments, 1, 1), "gorgonia: *gorgonia.own, step 3: shapes differ")
}
