package cpu

import (
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/device"
)

// kernelSet is what an instruction set has to supply. The vector entries work
// on slices of equal length; those for channels take whole pixels of 16 floats.
type kernelSet struct {
	name string
	functions
	tile func(*tile)
	// depth is the most steps for which a product runs a tile: the panels that
	// share them, so many floats wide, should fill no more than a part of the
	// second-level cache, or of the first-level one when there is one panel.
	depth int
	// transpose sets dst[k*16+i] = src[i*stride+k] for 16 rows and n columns.
	transpose func(dst, src []float32, stride, n int)
	// untranspose sets, or adds to, dst[i*stride+k] from src[k*16+i] for 16 rows;
	// nil without.
	untranspose func(dst, src []float32, stride, n int, accumulate bool)
	winogradKernels
	parts partKernels
	windowKernels
	layerKernels
	apart func(*tile) // whose columns do not mix

	// lines copies count lines of 16 floats from each row of src: line j of row i
	// goes to dst[j*next+i*16].
	lines func(dst, src []float32, stride, next, rows, count int)
	// turn sets row i of c to element i of the lines at src, of 16 floats each:
	// count rows of width floats. bias holds 16 floats or is nil; flags are a
	// tile's.
	turn func(c, src, bias []float32, stride, count, width, flags int)
	// turnsProducts says that turning C costs less than packing weights.
	turnsProducts bool

	add, mul, max, min  func(dst, a, b []float32)
	f16, bf16           halfKernels
	scale               func(dst, a []float32, s float32)
	relu                func(y, x []float32)
	reluBackward        func(dx, dy, y []float32)
	reluBackwardAdd     func(dx, dy, y []float32)
	sgd                 func(w, grad []float32, p *sgdNumbers)
	sgdMomentum         func(w, grad, momentum []float32, p *sgdNumbers)
	adam                func(w, grad, m, v []float32, p *adamNumbers)
	sumSquares          func(out []float64, x []float32) // whole blocks
	momentsOf           func(out *planeMoments, x []float32)
	normForward         func(y, x, residual []float32, p *normNumbers, relu bool)
	normBackwardSums    func(out *planeSums, dy, x, y []float32, p *normNumbers)
	normBackwardOutputs func(dx, dresidual, dy, x, y []float32, p *normNumbers, accumulate bool)
}

// candidate is a set for this architecture; what it lacks keeps this processor
// from running it.
type candidate struct {
	name  string
	lacks string
	build func() *kernelSet
}

// candidates returns the sets of this architecture, the fastest first.
func candidates() []candidate {
	return append(fastKernels(), candidate{name: "portable", build: portableKernels})
}

// chooseKernels returns the set with that name, or for auto the first that the
// processor can run.
func chooseKernels(name string) (*kernelSet, error) {
	known := []string{"auto"}
	for _, c := range candidates() {
		switch {
		case c.lacks == "" && (name == c.name || name == "" || name == "auto"):
			return c.build(), nil
		case name == c.name:
			return nil, fmt.Errorf("kernels %q need %s, which this processor lacks; use auto or portable", name, c.lacks)
		}
		known = append(known, c.name)
	}
	return nil, fmt.Errorf("unknown kernels %q (known here: %s)", name, strings.Join(known, ", "))
}

func portableKernels() *kernelSet {
	return &kernelSet{
		name:      "portable",
		functions: portableFunctions(),
		tile:      func(t *tile) { t.each(1, tileRows, portableTile) },
		depth:     512,
		transpose: portableTranspose,
		apart:     portableApart,
		lines:     portableLines,
		turn:      portableTurn,

		windowKernels: portableWindows(),
		layerKernels:  portableLayers(),

		add: portableAdd, mul: portableMul, max: portableMax, min: portableMin,
		f16:                 portableHalves(device.F16ToF32, device.F32ToF16),
		bf16:                portableHalves(device.BF16ToF32, device.F32ToBF16),
		scale:               portableScale,
		relu:                portableReLU,
		reluBackward:        portableReLUBackward,
		reluBackwardAdd:     portableReLUBackwardAdd,
		sgd:                 portableSGD,
		sgdMomentum:         portableSGDMomentum,
		adam:                portableAdam,
		sumSquares:          portableSumSquares,
		momentsOf:           portableMoments,
		normForward:         portableNormForward,
		normBackwardSums:    portableNormBackwardSums,
		normBackwardOutputs: portableNormBackwardOutputs,
	}
}
