package optim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
)

// sparseTrial is a table of 40 rows of 10, cut in segments, under one optimizer.
type sparseTrial struct {
	segments []Segment
	opt      Optimizer
	grad     device.Buf
}

func newSparseTrial(t *testing.T, dev device.Device, c Config) sparseTrial {
	t.Helper()
	p := param(t, "table.weight", 400, true)
	p.Shape = []int{40, 10}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range p.Value.F32() {
		p.Value.F32()[i] = float32(r.NormFloat64())
	}
	grad := device.FromF32(make([]float32, 400))
	opt, err := New(c)
	require.NoError(t, err)
	trial := sparseTrial{cut(p, grad, 128, 256), opt, grad}
	require.NoError(t, opt.Init(dev, trial.segments))
	return trial
}

// step updates with gradients at rows only, which are told of when sparse.
func (s sparseTrial) step(t *testing.T, step int, rows []int32, sparse bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(step), 3))
	clear(s.grad.F32())
	for _, row := range rows {
		for j := range 10 {
			s.grad.F32()[int(row)*10+j] = float32(r.NormFloat64())
		}
	}
	for i := range s.segments {
		s.segments[i].Rows = nil
		if sparse {
			s.segments[i].Rows = rows
		}
	}
	require.NoError(t, s.opt.Update(step, s.segments, 0.1, 0.5))
}

func (s sparseTrial) state(t *testing.T) [][]float32 {
	t.Helper()
	out := [][]float32{s.segments[0].Param.Value.F32()}
	require.NoError(t, s.opt.State(func(_ string, _ Segment, b device.Buf) error {
		out = append(out, b.F32())
		return nil
	}))
	return out
}

var touched = [][]int32{{0, 1, 12, 13, 25, 39}, {12}, {}, {0, 2, 26, 27}}

// The exact form has the bits of the dense gradient, with and without decay, and
// wherever the table is cut.
func TestExactSparseUpdatesAreDense(t *testing.T) {
	for _, dev := range devices(t) {
		for _, name := range Names() {
			for _, decay := range []float32{0, 0.01} {
				t.Run(fmt.Sprint(dev.Name(), name, decay), func(t *testing.T) {
					c := Config{Name: name, WeightDecay: decay}
					dense, sparse := newSparseTrial(t, dev, c), newSparseTrial(t, dev, c)
					for i, rows := range touched {
						dense.step(t, i+1, rows, false)
						sparse.step(t, i+1, rows, true)
						require.Equal(t, dense.state(t), sparse.state(t), "step %d", i+1)
					}
				})
			}
		}
	}
}

// The lazy form gives rows that are touched in every step the bits of the dense
// gradient, and leaves all others as they were.
func TestLazySparseUpdatesVisitTheRowsOnly(t *testing.T) {
	for _, dev := range devices(t) {
		for _, name := range []string{"sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", "adagrad"} {
			c := Config{Name: name, WeightDecay: 0.01, Lazy: true}
			dense, lazy := newSparseTrial(t, dev, c), newSparseTrial(t, dev, c)
			start := slices.Clone(lazy.state(t)[0])
			rows := []int32{3, 12, 13, 25}
			for i := range 3 {
				dense.step(t, i+1, rows, false)
				lazy.step(t, i+1, rows, true)
			}
			want, got := dense.state(t)[0], lazy.state(t)[0]
			for row := range int32(40) {
				lo, hi := row*10, row*10+10
				if slices.Contains(rows, row) {
					require.Equal(t, want[lo:hi], got[lo:hi], "%s, row %d", name, row)
				} else {
					require.Equal(t, start[lo:hi], got[lo:hi], "%s, row %d", name, row)
				}
			}
		}
	}
}

func TestLazyNeedsNoNormsOfTheWhole(t *testing.T) {
	for _, name := range []string{"lars", "lamb"} {
		_, err := New(Config{Name: name, Lazy: true})
		require.ErrorContains(t, err, name+" scales a parameter by norms of all its rows")
	}
}

// A frozen parameter keeps its value and state whatever the optimizer.
func TestFrozenParametersKeepValueAndState(t *testing.T) {
	for _, name := range Names() {
		trial := newSparseTrial(t, naive.New(), Config{Name: name, WeightDecay: 0.01})
		trial.step(t, 1, touched[0], false)
		var before [][]float32
		for _, s := range trial.state(t) {
			before = append(before, slices.Clone(s))
		}
		trial.segments[0].Param.Frozen = true
		trial.step(t, 2, touched[0], false)
		require.Equal(t, before, trial.state(t), name)
		trial.segments[0].Param.Frozen = false
		trial.step(t, 3, touched[0], false)
		require.NotEqual(t, before, trial.state(t), name)
	}
}
