package nn

import (
	"sync"
	"sync/atomic"
)

// Filling is the initial values of parameters on their way.
type Filling struct {
	seed  uint64
	all   []*ahead
	helps sync.WaitGroup
}

// ahead is a parameter that is not yet known to have its values.
type ahead struct {
	param *Param
	taken atomic.Bool
	done  chan struct{}
}

// FillAhead is Fill by a goroutine beside the caller, in the order of first use: a
// first forward pass begins at once, and each use waits for its parameter or
// computes the values itself. Until Wait has returned nothing else may read or
// write the parameters or move them, nor set what is Before a use until they have
// been used.
func FillAhead(blocks []Block, seed uint64) *Filling {
	f := &Filling{seed: seed}
	for _, p := range Params(blocks) {
		a := &ahead{param: p, done: make(chan struct{})}
		f.all = append(f.all, a)
		p.Before(func() error {
			f.fill(a)
			return nil
		})
	}
	f.helps.Go(func() {
		for _, a := range f.all {
			if !a.taken.Load() {
				f.fill(a)
			}
		}
	})
	return f
}

// fill returns when a's parameter has its values.
func (f *Filling) fill(a *ahead) {
	if a.taken.Swap(true) {
		<-a.done
		return
	}
	a.param.fill(f.seed)
	close(a.done)
}

// Wait returns when all parameters have their values. A Filling that is nil has
// none on their way.
func (f *Filling) Wait() {
	if f == nil {
		return
	}
	for _, a := range f.all {
		f.fill(a)
	}
	f.helps.Wait()
	f.all = nil
}
