package nn_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// lookUp runs a forward and a backward pass of a table over ids, with gradients
// of small integers, and with tied also a Linear over the same table.
func lookUp(dev device.Device, tape *nn.Tape, l *nn.Embedding, ids []int32, tied bool) {
	tape.Begin(nn.Pass{Training: true})
	y := l.Forward(tape, tape.Input(device.FromI32(ids), nn.Plain(len(ids)), false))
	out := y
	if tied {
		out = (&nn.Linear{Weight: l.Weight}).Forward(tape, y)
	}
	dy, err := dev.Alloc(device.F32, out.Shape.Len())
	if err != nil {
		panic(err)
	}
	for i := range dy.F32() {
		dy.F32()[i] = float32(i%7 - 3)
	}
	tape.SeedGrad(out, dy)
	tape.Backward()
}

// Rows that passes look up are the touched ones; what they hold is the dense
// gradient to the bit, also when passes add up and after a step's end.
func TestSparseGradientIsTheDenseOne(t *testing.T) {
	const count, width = 9, 3
	steps := [][][]int32{{{4, 1, 4}, {7, 1}}, {{0}}, {{8, 8, 2}, {3}}}
	for _, dev := range devices() {
		dense, sparse := nn.NewEmbedding("a", count, width), nn.NewEmbedding("a", count, width)
		sparse.Weight.Sparse = true
		materialize(t, dev, dense)
		materialize(t, dev, sparse)
		var packed nn.SparseGrad
		tape := nn.NewTape(dev)
		for _, micros := range steps {
			dense.Weight.ZeroGrad()
			sparse.Weight.ZeroGrad()
			var want []int32
			for _, ids := range micros {
				lookUp(dev, tape, dense, ids, false)
				lookUp(dev, tape, sparse, ids, false)
				want = append(want, ids...)
			}
			slices.Sort(want)
			want = slices.Compact(want)
			rows, all := sparse.Weight.TouchedRows()
			require.False(t, all)
			require.Equal(t, want, rows)
			a, _ := dense.Weight.Grad(0)
			b, written := sparse.Weight.Grad(0)
			require.True(t, written)
			require.Equal(t, a.F32(), b.F32())
			require.True(t, sparse.Weight.SparseGrad(&packed))
			require.Equal(t, want, packed.Rows)
			for k, i := range packed.Rows {
				require.Equal(t, a.F32()[int(i)*width:(int(i)+1)*width], packed.Values.F32()[k*width:(k+1)*width])
			}
		}
	}
}

// A Linear over the same table gives every row a gradient.
func TestTiedTableIsTouchedWholly(t *testing.T) {
	for _, dev := range devices() {
		l := nn.NewEmbedding("a", 5, 2)
		l.Weight.Sparse = true
		materialize(t, dev, l)
		tape := nn.NewTape(dev)
		lookUp(dev, tape, l, []int32{1}, true)
		rows, all := l.Weight.TouchedRows()
		require.True(t, all)
		require.Nil(t, rows)
		require.False(t, l.Weight.SparseGrad(&nn.SparseGrad{}))

		l.Weight.ZeroGrad()
		grad, _ := l.Weight.Grad(0)
		require.Equal(t, make([]float32, 10), grad.F32())
		lookUp(dev, tape, l, []int32{1}, false)
		rows, all = l.Weight.TouchedRows()
		require.False(t, all)
		require.Equal(t, []int32{1}, rows)
	}
}

// Memory that is bound anew is left zero where it was touched.
func TestBindingLeavesTheOldSlotZero(t *testing.T) {
	for _, dev := range devices() {
		l := nn.NewEmbedding("a", 5, 2)
		l.Weight.Sparse = true
		materialize(t, dev, l)
		first, second := device.FromF32(make([]float32, 10)), device.FromF32(make([]float32, 10))
		l.Weight.Bind(0, first)
		lookUp(dev, nn.NewTape(dev), l, []int32{3}, false)
		require.NotEqual(t, second.F32(), first.F32())
		l.Weight.Touch([]int32{4}, false)
		first.F32()[9] = 5
		rows, _ := l.Weight.TouchedRows()
		require.Equal(t, []int32{3, 4}, rows)
		l.Weight.Bind(0, second)
		require.Equal(t, make([]float32, 10), first.F32())
		require.Empty(t, must(l.Weight.TouchedRows()))
	}
}

func must(rows []int32, all bool) []int32 {
	if all {
		panic("all rows")
	}
	return rows
}
