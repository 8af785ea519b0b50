package parallel

import (
	"iter"

	"github.com/gradfusion/gradfusion/data"
)

// Micro is one micro-batch of a step.
type Micro struct {
	Index   int  // global, in the step
	Count   int  // micro-batches in the step
	Lo, Hi  int  // its samples among the step's
	Samples int  // Hi - Lo
	Total   int  // samples in the step
	Last    bool // of this rank's run
}

// MicroRange lists the micro-batches [lo, hi) of a step of that many samples, or of
// an evaluation; micro is the size of all but the step's last one.
func MicroRange(samples, micro, lo, hi int) iter.Seq[Micro] {
	count := data.Micros(samples, micro)
	return func(yield func(Micro) bool) {
		for i := lo; i < hi; i++ {
			m := Micro{Index: i, Count: count, Total: samples, Last: i == hi-1}
			m.Lo, m.Hi = data.MicroBounds(samples, micro, i)
			m.Samples = m.Hi - m.Lo
			if !yield(m) {
				return
			}
		}
	}
}
