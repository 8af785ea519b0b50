package nn

import (
	"fmt"
	"math"
	"math/rand/v2"

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
	r := rand.New(rand.NewPCG(seed, HashString(seed, name)))
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
// fills it. A parameter that stands in several blocks (tied) is filled once.
// Two parameters of one name are an error.
func Materialize(dev device.Device, blocks []Block, seed uint64) error {
	named := map[string]*Param{}
	for _, b := range blocks {
		for _, p := range b.Params() {
			if q := named[p.Name]; q == p {
				continue
			} else if q != nil {
				return fmt.Errorf("two parameters are called %s", p.Name)
			}
			named[p.Name] = p
			buf, err := dev.Alloc(device.F32, p.Len())
			if err != nil {
				return fmt.Errorf("memory for %s: %w", p.Name, err)
			}
			p.Value = buf
			p.Init.Fill(buf.F32(), seed, p.Name)
		}
		for _, s := range b.State() {
			if err := s.Running.materialize(dev); err != nil {
				return fmt.Errorf("memory for %s: %w", s.Name, err)
			}
		}
	}
	return nil
}
