package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gradfusion/gradfusion/device"
)

// Init says how a parameter starts. Values are a pure function of the seed and
// the parameter's name, so they do not depend on the layout of the job.
type Init struct {
	Kind  InitKind
	Value float32 // for Constant
	Scale float32 // bound of Uniform, standard deviation of Normal
}

// InitKind is a distribution.
type InitKind uint8

// The distributions. Constant with the zero Value is all zeros.
const (
	Constant InitKind = iota
	Uniform           // in [-Scale, Scale)
	Normal            // mean 0
)

// KaimingNormal is He et al. 2015 for ReLU networks: deviation sqrt(2/fan).
func KaimingNormal(fan int) Init {
	return Init{Kind: Normal, Scale: float32(math.Sqrt(2 / float64(fan)))}
}

// UniformFan is PyTorch's default for linear layers: bound 1/sqrt(fanIn).
func UniformFan(fanIn int) Init {
	return Init{Kind: Uniform, Scale: float32(1 / math.Sqrt(float64(fanIn)))}
}

// Fill writes the initial values of the parameter called name.
func (i Init) Fill(out []float32, seed uint64, name string) {
	i.draw(source(seed, name), out)
}

// FillPart is Fill for a part of a tensor: its values are those that the whole
// one has there.
func (i Init) FillPart(out []float32, part *Part, seed uint64, name string) {
	r, drawn, elsewhere := source(seed, name), 0, make([]float32, 4096)
	part.each(func(at, from, n int) {
		for drawn < from {
			skipped := min(from-drawn, len(elsewhere))
			i.draw(r, elsewhere[:skipped])
			drawn += skipped
		}
		i.draw(r, out[at:at+n])
		drawn += n
	})
}

func source(seed uint64, name string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, HashString(seed, name)))
}

// draw writes the next values of r.
func (i Init) draw(r *rand.Rand, out []float32) {
	for k := range out {
		switch i.Kind {
		case Uniform:
			u := float64(r.Float64()) // conversions keep products from being fused
			out[k] = float32((float64(2*u) - 1) * float64(i.Scale))
		case Normal:
			out[k] = float32(r.NormFloat64() * float64(i.Scale))
		default:
			out[k] = i.Value
		}
	}
}

// Materialize gives every parameter and state of the blocks memory on dev and
// fills it: Allocate and Fill.
func Materialize(dev device.Device, blocks []Block, seed uint64) error {
	if err := Allocate(dev, blocks); err != nil {
		return err
	}
	Fill(blocks, seed)
	return nil
}

// Allocate gives every parameter and state of the blocks memory on dev; the
// parameters, whose values are not set, lie side by side in one allocation. A
// parameter that stands in several blocks (tied) has one place. Two parameters of
// one name are an error.
func Allocate(dev device.Device, blocks []Block) error {
	named := map[string]*Param{}
	params := Params(blocks)
	total := 0
	for _, p := range params {
		if named[p.Name] != nil {
			return fmt.Errorf("two parameters are called %s", p.Name)
		}
		named[p.Name] = p
		total += spaced(p.Len())
	}
	all, err := dev.Alloc(device.F32, total)
	if err != nil {
		return fmt.Errorf("memory for %d parameters: %w", len(params), err)
	}
	at := 0
	for _, p := range params {
		p.Value = all.Slice(at, at+p.Len())
		at += spaced(p.Len())
	}
	for _, b := range blocks {
		for _, s := range b.State() {
			if err := s.Running.materialize(dev); err != nil {
				return fmt.Errorf("memory for %s: %w", s.Name, err)
			}
		}
	}
	return nil
}

// spaced is n rounded up so that what follows is aligned.
func spaced(n int) int {
	const line = device.Align / 4
	return (n + line - 1) / line * line
}

// Fill computes the initial values of all parameters on all processors, the
// largest ones first: millions of random numbers are what a start would wait for.
func Fill(blocks []Block, seed uint64) {
	order := Params(blocks)
	slices.SortStableFunc(order, func(a, b *Param) int { return b.Len() - a.Len() })
	var next atomic.Int64
	var helpers sync.WaitGroup
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(order)); i = next.Add(1) - 1 {
			order[i].fill(seed)
		}
	}
	for range min(runtime.GOMAXPROCS(0), len(order)) - 1 {
		helpers.Go(work)
	}
	work()
	helpers.Wait()
}

func (p *Param) fill(seed uint64) {
	if p.Part != nil {
		p.Init.FillPart(p.Value.F32(), p.Part, seed, p.Name)
		return
	}
	p.Init.Fill(p.Value.F32(), seed, p.Name)
}
