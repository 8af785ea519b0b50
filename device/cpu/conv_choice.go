package cpu

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
)

// convMethod says how to compute convolutions.
type convMethod uint8

const (
	convAuto convMethod = iota
	convDirect
	convWinograd2
	convWinograd4
)

// parseConv returns the method with that name, which set has to have.
func parseConv(name string, set *kernelSet) (convMethod, error) {
	switch name {
	case "", "auto":
		return convAuto, nil
	case "direct":
		return convDirect, nil
	case "winograd2", "winograd4":
		if set.winograd2 == nil {
			return 0, fmt.Errorf("convolutions by %s are for avx2 and avx512, and these kernels are %s; use auto or direct", name, set.name)
		}
		if name == "winograd2" {
			return convWinograd2, nil
		}
		return convWinograd4, nil
	}
	return 0, fmt.Errorf("unknown method of convolution %q (known: auto, direct, winograd2, winograd4)", name)
}

// winogradFor returns the form that computes d, or nil for the direct method.
// The choice is a pure function of the shape and of the kernel set, never of a
// measurement, so that all ranks of a job choose alike.
func (k *kernels) winogradFor(d device.Conv) *winogradForm {
	if k.conv == convDirect || d.R != 3 || d.S != 3 || d.StrideH != 1 || d.StrideW != 1 || d.ReachH() != 3 || d.ReachW() != 3 || d.XLayout != device.Blocked16 {
		return nil
	}
	switch k.conv {
	case convWinograd2:
		return k.set.winograd2
	case convWinograd4:
		return k.set.winograd4
	}
	var best *winogradForm
	least := directCost(d)
	for _, form := range []*winogradForm{k.set.winograd2, k.set.winograd4} {
		if form == nil {
			continue
		}
		if cost := form.cost(d); cost < least {
			best, least = form, cost
		}
	}
	return best
}

// Costs are in multiplications of channels: what the transforms take beside the
// products was measured once with AVX2 and with AVX-512, in units of products,
// and rounded up, so that a tie goes to the direct method.
const (
	directWeights = 60 // to pack one weight's nine taps
	// transformCost and weightsCost are for each position of a tile's channel and
	// of a weight.
	transformCost = 10
	weightsCost   = 6
)

// wholeBlocks returns c rounded up to whole blocks.
func wholeBlocks(c int) int { return device.Blocks(c) * block }

func directCost(d device.Conv) int {
	c, k := wholeBlocks(d.C), wholeBlocks(d.K)
	return (d.N*d.OutH()*d.OutW()*9 + directWeights) * c * k
}

func (f *winogradForm) cost(d device.Conv) int {
	c, k := wholeBlocks(d.C), wholeBlocks(d.K)
	w := newWinogradTiles(f, d)
	return w.positions * (w.rows()*w.wide*(c*k+transformCost*(c+k)) + weightsCost*c*k)
}
