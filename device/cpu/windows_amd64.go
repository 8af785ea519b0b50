package cpu

import "unsafe"

// windowAssembly is what one instruction set has behind windowKernels; each
// takes the address of a windowRun.
type windowAssembly struct {
	maxForward, maxBackward, maxBackwardAdd             func(run *uint64)
	averageForward, averageBackward, averageBackwardAdd func(run *uint64)
}

func windowsAVX2() windowKernels {
	return windowAssembly{
		maxForward: maxForwardAVX2, maxBackward: maxBackwardAVX2, maxBackwardAdd: maxBackwardAddAVX2,
		averageForward: averageForwardAVX2, averageBackward: averageBackwardAVX2, averageBackwardAdd: averageBackwardAddAVX2,
	}.kernels()
}

func windowsAVX512() windowKernels {
	return windowAssembly{
		maxForward: maxForwardAVX512, maxBackward: maxBackwardAVX512, maxBackwardAdd: maxBackwardAddAVX512,
		averageForward: averageForwardAVX512, averageBackward: averageBackwardAVX512, averageBackwardAdd: averageBackwardAddAVX512,
	}.kernels()
}

func (a windowAssembly) kernels() windowKernels {
	backward := func(store, add func(run *uint64)) func(r *windowRun, accumulate bool) {
		return func(r *windowRun, accumulate bool) {
			if accumulate {
				add(r.words())
			} else {
				store(r.words())
			}
		}
	}
	return windowKernels{
		maxForward:      func(r *windowRun) { a.maxForward(r.words()) },
		averageForward:  func(r *windowRun) { a.averageForward(r.words()) },
		maxBackward:     backward(a.maxBackward, a.maxBackwardAdd),
		averageBackward: backward(a.averageBackward, a.averageBackwardAdd),
	}
}

// words is the address that the assembly takes.
func (r *windowRun) words() *uint64 { return (*uint64)(unsafe.Pointer(r)) }
