package nn_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/nn/nntest"
)

// meeting is nn.Across for goroutines: who comes last opens it for all.
type meeting struct {
	mu      sync.Mutex
	ranks   int
	came    int
	open    chan struct{}
	counts  []int
	vectors [][][]float64 // by rank
}

func (m *meeting) meet(rank, count int, vectors ...[]float64) (counts []int, all [][][]float64) {
	m.mu.Lock()
	if m.came == 0 {
		m.open, m.counts, m.vectors = make(chan struct{}), make([]int, m.ranks), make([][][]float64, m.ranks)
	}
	m.counts[rank] = count
	for _, v := range vectors {
		m.vectors[rank] = append(m.vectors[rank], slices.Clone(v))
	}
	counts, all, open := m.counts, m.vectors, m.open
	if m.came++; m.came == m.ranks {
		m.came = 0
		close(open)
	}
	m.mu.Unlock()
	<-open
	return counts, all
}

type member struct {
	*meeting
	rank int
}

func (m member) Moments(_ string, count int, mean, m2 []float64) (total int, err error) {
	counts, all := m.meet(m.rank, count, mean, m2)
	for _, n := range counts {
		total += n
	}
	for c := range mean {
		mu, s := 0.0, 0.0
		for r, n := range counts {
			mu += all[r][0][c] * float64(n) / float64(total)
		}
		for r, n := range counts {
			d := all[r][0][c] - mu
			s += all[r][1][c] + d*d*float64(n)
		}
		mean[c], m2[c] = mu, s
	}
	return total, nil
}

func (m member) Sums(_ string, sums []float64) error {
	_, all := m.meet(m.rank, 0, sums)
	for i := range sums {
		sums[i] = 0
		for r := range all {
			sums[i] += all[r][0][i]
		}
	}
	return nil
}

// normed is what a BatchNorm with a residual and a ReLU gives for samples.
type normed struct{ y, dx, dresidual, dscale, dshift []float32 }

func normalise(dev device.Device, across nn.Across, p nn.Precision, s nn.Shape, x, residual, dy []float32) (out normed, err error) {
	defer nn.Catch(&err)
	l := nn.NewBatchNorm2d("bn", s.Dims[1], nn.BatchNormConfig{})
	if err := nn.Materialize(dev, []nn.Block{nn.NewSeq("a", l)}, 1); err != nil {
		return out, err
	}
	for c := range s.Dims[1] {
		l.Norm.Scale.Value.F32()[c], l.Norm.Shift.Value.F32()[c] = float32(c+1)/2, float32(c)/4
	}
	l.Norm.Running.Across = across
	tape := nn.NewTape(dev)
	tape.Begin(nn.Pass{Training: true, Precision: p})
	vx, vr := tape.Input(nntest.Pack(s, x), s, true), tape.Input(nntest.Pack(s, residual), s, true)
	in := vx
	if p != none { // so that the norm's input has 16 bits
		in = nn.ReLU{}.Forward(tape, vx)
	}
	y := l.Fused(tape, in, vr, device.ReLU)
	wide := device.FromF32(make([]float32, y.Value.Len))
	dev.Kernels().Cast(wide, y.Value)
	out.y = nntest.Unpack(s, wide)
	tape.SeedGrad(y, nntest.Pack(s, dy))
	tape.BackwardInput()
	tape.BackwardWeight()
	out.dx, out.dresidual = nntest.Unpack(s, vx.Grad()), nntest.Unpack(s, vr.Grad())
	dscale, _ := l.Norm.Scale.Grad(0)
	dshift, _ := l.Norm.Shift.Grad(0)
	out.dscale, out.dshift = slices.Clone(dscale.F32()), slices.Clone(dshift.F32())
	return out, nil
}

// onRanks normalises parts of the samples side by side and puts the results
// together.
func onRanks(dev device.Device, parts []int, p nn.Precision, s nn.Shape, x, residual, dy []float32) (got normed, err error) {
	m := &meeting{ranks: len(parts)}
	results, errs := make([]normed, len(parts)), make([]error, len(parts))
	var group sync.WaitGroup
	lo, each := 0, s.Dims[1]*s.Dims[2]*s.Dims[3]
	for rank, n := range parts {
		from, to, part := lo*each, (lo+n)*each, nn.Image(n, s.Dims[1], s.Dims[2], s.Dims[3])
		lo += n
		group.Go(func() {
			results[rank], errs[rank] = normalise(dev, member{m, rank}, p, part, x[from:to], residual[from:to], dy[from:to])
		})
	}
	group.Wait()
	got = normed{dscale: make([]float32, s.Dims[1]), dshift: make([]float32, s.Dims[1])}
	for _, p := range results {
		got.y, got.dx, got.dresidual = append(got.y, p.y...), append(got.dx, p.dx...), append(got.dresidual, p.dresidual...)
		for i := range p.dscale {
			got.dscale[i] += p.dscale[i]
			got.dshift[i] += p.dshift[i]
		}
	}
	return got, errors.Join(errs...)
}

// Ranks with parts of unequal size, a single value among them, normalise as one
// rank does that has all samples.
func TestBatchNormAcrossRanksIsThatOfTheWholeBatch(t *testing.T) {
	for _, dev := range devices() {
		for _, c := range []struct {
			side  int
			parts []int
		}{{1, []int{5, 1}}, {3, []int{1, 4, 2}}, {2, []int{3, 3}}} {
			t.Run(fmt.Sprint(dev.Name(), c.parts), func(t *testing.T) {
				// Values are up to about 30 and each is some roundings old.
				compareAcross(t, dev, c.parts, c.side, none, 3e-5)
				// A unit in the last place of these is 2^-6, and y, dx and dx's part
				// before the sums are each rounded to half a one.
				compareAcross(t, dev, c.parts, c.side, all, 3.0/64)
			})
		}
	}
}

// compareAcross requires that ranks give what one gives, but for bound.
func compareAcross(t *testing.T, dev device.Device, parts []int, side int, p nn.Precision, bound float64) {
	t.Helper()
	r, total := rand.New(rand.NewPCG(3, 4)), 0
	for _, n := range parts {
		total += n
	}
	s := nn.Image(total, 19, side, side) // more than one block of channels
	var x, residual, dy []float32
	for range total * 19 * side * side {
		x, residual, dy = append(x, 3+float32(r.NormFloat64())), append(residual, float32(r.NormFloat64())), append(dy, float32(r.NormFloat64()))
	}
	want, err := normalise(dev, nil, p, s, x, residual, dy)
	require.NoError(t, err)
	got, err := onRanks(dev, parts, p, s, x, residual, dy)
	require.NoError(t, err)
	require.InDeltaSlice(t, want.y, got.y, bound)
	require.InDeltaSlice(t, want.dresidual, got.dresidual, bound)
	require.InDeltaSlice(t, want.dx, got.dx, 2*bound)
	require.InDeltaSlice(t, want.dscale, got.dscale, 2*bound)
	require.InDeltaSlice(t, want.dshift, got.dshift, 2*bound)
}

var errGone = errors.New("rank 1 is gone")

// broken is an Across whose ranks are gone by the time of the backward pass.
type broken struct{ member }

func (broken) Sums(string, []float64) error { return errGone }

func TestBatchNormAcrossNamesItsLayer(t *testing.T) {
	for _, dev := range devices() {
		x := []float32{1, 2, 3, 4}
		_, err := normalise(dev, broken{member{&meeting{ranks: 1}, 0}}, none, nn.Image(4, 1, 1, 1), x, x, x)
		require.ErrorIs(t, err, errGone)
		require.ErrorContains(t, err, "bn")
	}
}
