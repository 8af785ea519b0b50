package cpu

// storeLines sets, or adds to, dst[i*stride+k] from src[k*16+i] for i below
// width and k below n: lines of 16 channels become rows.
func (set *kernelSet) storeLines(dst, src []float32, stride, n, width int, accumulate bool) {
	if set.turnsProducts {
		// A whole line of each row at a time: the rows of many channels share a
		// set of the cache, which 16 half lines would not survive.
		flags := 0
		if accumulate {
			flags = flagAccumulate
		}
		for k := 0; k < n; k += block {
			set.turn(dst[k:], src[k*block:], nil, stride, width, min(block, n-k), flags)
		}
		return
	}
	if width == block && set.untranspose != nil {
		set.untranspose(dst, src, stride, n, accumulate)
		return
	}
	portableUntranspose(dst, src, stride, n, width, accumulate)
}

func portableUntranspose(dst, src []float32, stride, n, width int, accumulate bool) {
	for i := range width {
		line := dst[i*stride:][:n]
		for k := range line {
			v := src[k*block+i]
			if accumulate {
				v += line[k]
			}
			line[k] = v
		}
	}
}
