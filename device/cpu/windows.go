package cpu

import "math"

// windowRun is pixels of 16 channels whose pooling windows have the same taps:
// neighbours in a row of the smaller image, each one step further in the larger
// one. The assembly reads the fields at fixed offsets: TestWindowOffsets holds
// them.
type windowRun struct {
	small   []float32 // of the pixels
	arg     []int32   // places of maxima; nil for averages
	large   []float32 // the whole plane
	taps    []windowTap
	pixels  int
	stride  int   // bytes from a window to the next
	step    int32 // from the numbers of a window's taps to those of the next
	divisor float32
}

// windowTap is a pixel of the first window of a run.
type windowTap struct {
	offset int64 // bytes
	number int32 // in row order
	_      int32
}

// windowKernels pool runs that have pixels and taps. Those of gradients add to
// the larger image, or store, where windows do not overlap.
type windowKernels struct {
	maxForward, averageForward   func(r *windowRun)
	maxBackward, averageBackward func(r *windowRun, add bool)
}

func portableWindows() windowKernels {
	return windowKernels{portableMaxForward, portableAverageForward, portableMaxBackward, portableAverageBackward}
}

// covers reports whether every input pixel is in exactly one window.
func (t *poolingTask) covers() bool {
	d := t.d
	return d.R == d.StrideH && d.S == d.StrideW && d.PadH == 0 && d.PadW == 0 && d.H%d.R == 0 && d.W%d.S == 0
}

// window fills in the taps and the divisor of output (oy, ox), and returns
// where the run of outputs ends whose windows have the same shape.
func (t *poolingTask) window(r *windowRun, oy, ox int) (next int) {
	d := t.d
	y0, x0 := oy*d.StrideH-d.PadH, ox*d.StrideW-d.PadW
	y1, x1 := min(y0+d.R, d.H), min(x0+d.S, d.W)
	next = ox + 1
	if x0 >= 0 && x0+d.S <= d.W {
		next = max(next, min((d.W-d.S+d.PadW)/d.StrideW+1, d.OutW()))
	}
	y0, x0 = max(0, y0), max(0, x0)
	r.taps = r.taps[:0]
	for y := y0; y < y1; y++ {
		for x := x0; x < x1; x++ {
			at := y*d.W + x
			r.taps = append(r.taps, windowTap{offset: int64(at * block * 4), number: int32(at)})
		}
	}
	r.divisor = float32(max(1, len(r.taps)))
	if d.CountPad {
		r.divisor = float32(d.R * d.S)
	}
	return next
}

// nothing is the result of windows that see no pixel.
func (r *windowRun) nothing(valid int) {
	for p := range r.pixels {
		y := r.small[p*block:][:block]
		clear(y)
		if r.arg == nil {
			continue
		}
		for c := range y {
			if r.arg[p*block+c] = -1; c < valid {
				y[c] = float32(math.Inf(-1))
			}
		}
	}
}

// pixel returns the pixel of a tap of window p.
func (r *windowRun) pixel(tap windowTap, p int) *[block]float32 {
	return (*[block]float32)(r.large[(int(tap.offset)+p*r.stride)/4:])
}

// number returns where tap lies for window p.
func (r *windowRun) number(tap windowTap, p int) int32 { return tap.number + int32(p)*r.step }

// portableMaxForward takes the first maximum in row order, or the first NaN.
func portableMaxForward(r *windowRun) {
	for p := range r.pixels {
		y, arg := (*[block]float32)(r.small[p*block:]), (*[block]int32)(r.arg[p*block:])
		for i, tap := range r.taps {
			x, number := r.pixel(tap, p), r.number(tap, p)
			for c, v := range x {
				// One comparison settles most: the rest is NaN and the start.
				if i > 0 && (v <= y[c] || y[c] != y[c]) {
					continue
				}
				y[c], arg[c] = v, number
			}
		}
	}
}

func portableMaxBackward(r *windowRun, add bool) {
	for p := range r.pixels {
		dy, arg := (*[block]float32)(r.small[p*block:]), (*[block]int32)(r.arg[p*block:])
		for _, tap := range r.taps {
			dx, number := r.pixel(tap, p), r.number(tap, p)
			for c, g := range dy {
				if arg[c] != number {
					g = 0
				}
				if add {
					g += dx[c]
				}
				dx[c] = g
			}
		}
	}
}

func portableAverageForward(r *windowRun) {
	for p := range r.pixels {
		var sum [block]float32
		for _, tap := range r.taps {
			for c, v := range r.pixel(tap, p) {
				sum[c] += v
			}
		}
		for c, v := range sum {
			r.small[p*block+c] = v / r.divisor
		}
	}
}

func portableAverageBackward(r *windowRun, add bool) {
	for p := range r.pixels {
		share := *(*[block]float32)(r.small[p*block:])
		for c := range share {
			share[c] /= r.divisor
		}
		for _, tap := range r.taps {
			dx := r.pixel(tap, p)
			for c, g := range share {
				if add {
					g += dx[c]
				}
				dx[c] = g
			}
		}
	}
}
