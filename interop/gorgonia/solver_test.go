package gorgonia

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/optim"
)

func TestSolverIsOurOptimizerToTheBit(t *testing.T) {
	for _, name := range optim.Names() {
		config := SolverConfig{
			Optimizer: optim.Config{Name: name, WeightDecay: 0.0625},
			Schedule:  optim.ScheduleConfig{Name: "cosine", Warmup: 2, Base: 0.25, Total: steps},
			ClipNorm:  1.5,
		}
		solver, err := NewSolver(naive.New(), config)
		require.NoError(t, err)
		theirs := foreignModel()

		o, err := optim.New(config.Optimizer)
		require.NoError(t, err)
		ours := ourModel(t)
		require.NoError(t, o.Init(naive.New(), ours))
		norm, err := optim.NewNorm(naive.New(), ours)
		require.NoError(t, err)
		schedule, err := optim.NewSchedule(config.Schedule)
		require.NoError(t, err)

		for step := 1; step <= steps; step++ {
			for i := range ours {
				fillGradient(theirs[i].(*foreign).grad.Float32s(), step, 1)
				fillGradient(ours[i].Grad.F32(), step, 1)
			}
			require.NoError(t, solver.Step(theirs))
			n, err := norm.Global(ours)
			require.NoError(t, err)
			require.NoError(t, o.Update(step, ours, schedule.LR(step-1), optim.ClipScale(n, 1.5)))
			for i := range ours {
				require.Equal(t, ours[i].Param.Value.F32(), theirs[i].(*foreign).value.Float32s(), "%s, step %d", name, step)
				require.Equal(t, make([]float32, ours[i].Hi), theirs[i].(*foreign).grad.Float32s(), "gradients are zeroed")
			}
		}
		var got, want [][]float32
		require.NoError(t, solver.State(func(_ string, _ optim.Segment, b device.Buf) error { got = append(got, b.F32()); return nil }))
		require.NoError(t, o.State(func(_ string, _ optim.Segment, b device.Buf) error { want = append(want, b.F32()); return nil }))
		require.Equal(t, want, got, name)
	}
}

func TestSolverRefuses(t *testing.T) {
	_, err := NewSolver(naive.New(), SolverConfig{Optimizer: optim.Config{Name: "adamm"}})
	require.ErrorContains(t, err, "did you mean adam?")
	_, err = NewSolver(naive.New(), SolverConfig{Schedule: optim.ScheduleConfig{Name: "cosine"}})
	require.ErrorContains(t, err, "the run has 0 steps")

	solver, err := NewSolver(naive.New(), SolverConfig{Schedule: optim.ScheduleConfig{Base: 1}})
	require.NoError(t, err)
	double := tensor.New(tensor.WithShape(2), tensor.Of(tensor.Float64))
	single := tensor.New(tensor.WithShape(2), tensor.Of(tensor.Float32))
	longer := tensor.New(tensor.WithShape(3), tensor.Of(tensor.Float32))
	scalar := tensor.New(tensor.FromScalar(float32(1)))
	matrix := tensor.New(tensor.WithShape(2, 2), tensor.Of(tensor.Float32))
	view, err := matrix.Slice(nil, tensor.S(0))
	require.NoError(t, err)
	for want, v := range map[string]*foreign{
		"solver: value of param-0: holds float64, want float32":                 {double, single},
		"solver: gradient of param-0: holds float64, want float32":              {single, double},
		"solver: gradient of param-0 has 3 elements, its value 2":               {single, longer},
		"solver: value of param-0: is a scalar, want a tensor":                  {scalar, scalar},
		"solver: value of param-0: is a view or masked, want contiguous memory": {view.(*tensor.Dense), single},
	} {
		require.ErrorContains(t, solver.Step([]G.ValueGrad{v}), want)
	}
	require.NoError(t, solver.Step([]G.ValueGrad{&foreign{single, single.Clone().(*tensor.Dense)}}))
	require.ErrorContains(t, solver.Step(foreignModel()), "solver: 2 values, the first step had 1")
	require.ErrorContains(t, solver.Step([]G.ValueGrad{&foreign{longer, longer}}), "value of param-0 has 3 elements, the first step had 2")
}

func TestValueGradsShareMemory(t *testing.T) {
	ours := ourModel(t)
	p := ours[0].Param
	v := ValueGrads(nnParams(ours))[0]
	_, err := v.Grad()
	require.EqualError(t, err, "parameter weight has no gradient")
	require.Equal(t, "weight", v.(G.Namer).Name())
	header := v.Value()
	require.Same(t, header, v.Value(), "the header is kept")
	header.(*tensor.Dense).Float32s()[0] = 42
	require.Equal(t, float32(42), p.Value.F32()[0])
	p.Value = device.FromF32(make([]float32, p.Len()))
	require.Equal(t, float32(0), v.Value().(*tensor.Dense).Float32s()[0], "the header follows the memory")
}

// A Gorgonia program trains a line with our Nesterov momentum.
func ExampleSolver() {
	g := G.NewGraph()
	x := G.NewMatrix(g, tensor.Float32, G.WithShape(4, 1), G.WithName("x"))
	y := G.NewMatrix(g, tensor.Float32, G.WithShape(4, 1), G.WithName("y"))
	w := G.NewMatrix(g, tensor.Float32, G.WithShape(1, 1), G.WithName("w"), G.WithInit(G.Zeroes()))
	difference := G.Must(G.Sub(G.Must(G.Mul(x, w)), y))
	cost := G.Must(G.Mean(G.Must(G.Square(difference))))
	if _, err := G.Grad(cost, w); err != nil {
		fmt.Println(err)
		return
	}
	machine := G.NewTapeMachine(g, G.BindDualValues(w))
	defer machine.Close()

	solver, err := NewSolver(naive.New(), SolverConfig{
		Optimizer: optim.Config{Name: "nesterov"},
		Schedule:  optim.ScheduleConfig{Base: 0.02},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	inputs := tensor.New(tensor.WithShape(4, 1), tensor.WithBacking([]float32{0, 1, 2, 3}))
	targets := tensor.New(tensor.WithShape(4, 1), tensor.WithBacking([]float32{0, 3, 6, 9}))
	for range 200 {
		if err := G.Let(x, inputs); err != nil {
			fmt.Println(err)
			return
		}
		if err := G.Let(y, targets); err != nil {
			fmt.Println(err)
			return
		}
		if err := machine.RunAll(); err != nil {
			fmt.Println(err)
			return
		}
		if err := solver.Step(G.NodesToValueGrads(G.Nodes{w})); err != nil {
			fmt.Println(err)
			return
		}
		machine.Reset()
	}
	fmt.Printf("w = %.3f\n", w.Value().Data().([]float32)[0])
	// Output: w = 3.000
}
