package cpu

import "unsafe"

func windowsAVX2() windowKernels {
	return windowKernels{
		maxForward:     func(r *windowRun) { maxForwardAVX2(r.words()) },
		averageForward: func(r *windowRun) { averageForwardAVX2(r.words()) },
		maxBackward: func(r *windowRun, add bool) {
			if add {
				maxBackwardAddAVX2(r.words())
			} else {
				maxBackwardAVX2(r.words())
			}
		},
		averageBackward: func(r *windowRun, add bool) {
			if add {
				averageBackwardAddAVX2(r.words())
			} else {
				averageBackwardAVX2(r.words())
			}
		},
	}
}

func windowsAVX512() windowKernels {
	return windowKernels{
		maxForward:     func(r *windowRun) { maxForwardAVX512(r.words()) },
		averageForward: func(r *windowRun) { averageForwardAVX512(r.words()) },
		maxBackward: func(r *windowRun, add bool) {
			if add {
				maxBackwardAddAVX512(r.words())
			} else {
				maxBackwardAVX512(r.words())
			}
		},
		averageBackward: func(r *windowRun, add bool) {
			if add {
				averageBackwardAddAVX512(r.words())
			} else {
				averageBackwardAVX512(r.words())
			}
		},
	}
}

// words is the address that the assembly takes.
func (r *windowRun) words() *uint64 { return (*uint64)(unsafe.Pointer(r)) }
