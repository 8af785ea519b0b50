package nn

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
)

// Partners are the ranks over which layers are cut, as one of them sees them
// (tensor parallelism: Shoeybi et al. 2019, Megatron-LM). All partners run the
// same operations on the same samples in the same order; each holds a part of
// the cut parameters and all of the others.
//
// A cut layer has two conjugate ends. Where what all partners hold alike enters
// it, nothing is sent forward and the gradient is summed backward; where partial
// results leave it, they are summed forward and nothing is sent backward. What
// lies between is cut along its features.
type Partners interface {
	Rank() int
	Size() int
	// Start begins to replace buf (floating-point numbers) on every partner by op
	// over all partners' values: the same bits on each. buf belongs to the call
	// until Wait returns; calls run in the order in which they were started.
	// label names the layer, for reports.
	Start(op device.ReduceOp, buf device.Buf, label string) Pending
}

// Pending is a call of Partners in flight.
type Pending interface {
	// Wait returns when the call has ended, with its error. It is called once.
	Wait() error
}

// PartnerError is a failure of what partners compute together, such as one that
// died. Operations panic with it and Catch returns it.
type PartnerError struct {
	Layer string
	What  string // that was on its way
	Err   error
}

func (e *PartnerError) Error() string { return fmt.Sprintf("%s (%s): %v", e.Layer, e.What, e.Err) }

func (e *PartnerError) Unwrap() error { return e.Err }

// settle waits for a call of partners.
func settle(p Pending, layer, what string) {
	if err := p.Wait(); err != nil {
		panic(&PartnerError{Layer: layer, What: what, Err: err})
	}
}

// Cut says how a layer is cut over partners. The zero value is no cut.
type Cut struct {
	Partners Partners // nil, or one of them: the layer is whole
	Inputs   bool     // the input's features are dealt to the partners; else the output's
	Groups   int      // of features, each dealt on its own: 3 for queries, keys and values; 0 means 1
	Unit     int      // features that stay together: the width of a head; 0 means 1
}

// IsWhole reports whether nothing is cut.
func (c Cut) IsWhole() bool { return c.Partners == nil || c.Partners.Size() == 1 }

// part returns this partner's part of a tensor of the given shape, cut along
// dim; nil for no cut.
func (c Cut) part(layer string, dim int, whole ...int) *Part {
	if c.IsWhole() {
		return nil
	}
	groups, unit := max(c.Groups, 1), max(c.Unit, 1)
	count := whole[dim] / (groups * unit)
	if count*groups*unit != whole[dim] {
		fail(layer, "cut", "%d features are not %d groups of units of %d", whole[dim], groups, unit)
	}
	if count < c.Partners.Size() {
		fail(layer, "cut", "%d units of %d features are too few for %d partners", count, unit, c.Partners.Size())
	}
	p := &Part{Whole: whole, Dim: dim}
	lo, hi := share(count, c.Partners.Size(), c.Partners.Rank())
	for g := range groups {
		p.Runs = append(p.Runs, Run{(g*count + lo) * unit, (g*count + hi) * unit})
	}
	_, most := share(count, c.Partners.Size(), 0)
	p.Largest = groups * most * unit
	return p
}

// Own returns how many of n units this partner has.
func (c Cut) Own(n int) int {
	if c.IsWhole() {
		return n
	}
	lo, hi := share(n, c.Partners.Size(), c.Partners.Rank())
	return hi - lo
}

// share returns the run [lo, hi) of n units that one of size partners has: all
// have as many, or one more in the first ones.
func share(n, size, rank int) (lo, hi int) {
	each, more := n/size, n%size
	lo = rank*each + min(rank, more)
	hi = lo + each
	if rank < more {
		hi++
	}
	return lo, hi
}
