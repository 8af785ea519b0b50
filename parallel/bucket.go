package parallel

import (
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// entry is a parameter's place in its bucket.
type entry struct {
	param   *nn.Param
	bucket  *bucket
	offset  int          // in the bucket, in elements
	uses    int          // in one forward pass
	more    int          // deterministic: where in bucket.grad the later uses' gradients are
	extras  []device.Buf // otherwise: slots of the uses after the first
	tied    bool         // other stages hold the parameter too
	frozen  bool         // in the present step
	pending int          // uses that the present leaf has not delivered
}

// bucket is a flat run of gradients that travels as one message.
type bucket struct {
	index   int
	entries []*entry
	size    int // in elements, padding included
	// grad is the sum over leaves and ranks, in registered memory. In
	// deterministic mode the later uses of parameters follow after size: each
	// use is summed for itself, because the stages of a pipeline may have them
	// on different ranks.
	grad   device.Buf
	values device.Buf   // the parameters' masters, in the same places; zero where they are elsewhere
	copies []device.Buf // of a sharded optimizer: the values of all ranks, where this one can read them
	label  string       // for reports

	bounds []int            // of a sharded optimizer: the ranks' parts of size; nil: all is everybody's
	spread *collective.Work // the parameters on their way, of a sharded optimizer or an average

	spreadLabel string

	segments [2]int // Defer: its parameters' among the optimizer's, from and to

	pending int // entries that the present leaf has not completed
	ready   bool
	work    *collective.Work
	flying  bool             // Defer: its sum has not been waited for
	owed    bool             // Defer: its parameters wait for the update of the last step
	leaves  int              // of the step whose sum it is
	frozen  bool             // all of it, in the present step
	skipped bool             // frozen in the last step too: nothing is sent
	sum     *collective.Work // that a hook has started; nil for none

	feedback *feedback // of a lossy wire: what this rank has not sent yet

	leaf  device.Buf // deterministic: the present leaf's gradients
	tree  counter    // deterministic: this rank's nodes
	table *table     // of a parameter with a sparse gradient; nil for others
	// Deterministic: staging of the all-to-all, and leaf buffers that the
	// reduction no longer needs, which the next step takes back.
	sends, recvs device.Buf
	spares       []device.Buf
}

// cutBuckets places parameters, in the order in which their gradients become
// complete, into buckets of about the given sizes in bytes. A parameter starts
// on a multiple of 512 bytes and is never split. One that partners share has the
// room of the largest part, so that all of them have the others in the same
// places and add them up in the same order. One with a sparse gradient has a
// bucket of its own, after all others.
func cutBuckets(params []*nn.Param, firstBytes, bytes int) []*bucket {
	out := []*bucket{} // a stage without parameters is cut too
	var open *bucket
	for _, p := range sparseLast(params) {
		if open == nil || p.Sparse {
			open = &bucket{index: len(out)}
			out = append(out, open)
		}
		open.entries = append(open.entries, &entry{param: p, bucket: open, offset: open.size, uses: 1})
		open.size += roundUp(p.Space(), device.NormBlock)
		limit := bytes
		if open.index == 0 {
			limit = min(firstBytes, bytes)
		}
		if p.Sparse {
			open.table = newTable(p)
		}
		if p.Sparse || open.size*device.F32.Size() >= limit {
			open = nil
		}
	}
	for _, b := range out {
		b.label = b.describe()
	}
	return out
}

// placeUses gives each later use of a parameter a place behind the first ones
// and returns the length of grad.
func (b *bucket) placeUses() int {
	n := b.size
	if b.table != nil {
		return n // all uses have one slot
	}
	for _, e := range b.entries {
		e.more = n
		n += (e.uses - 1) * roundUp(e.param.Space(), device.NormBlock)
	}
	return n
}

func (b *bucket) describe() string {
	names := make([]string, 0, 3)
	for _, e := range b.entries[:min(len(b.entries), 3)] {
		names = append(names, e.param.Name)
	}
	if more := len(b.entries) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf(BucketLabel+"%d [%s]", b.index, strings.Join(names, ", "))
}

// missing names the parameters whose gradient the present leaf did not deliver.
func (b *bucket) missing() []string {
	var out []string
	for _, e := range b.entries {
		if e.pending > 0 {
			out = append(out, e.param.Name)
		}
	}
	return out
}

// begin makes the bucket expect one delivery of each use.
func (b *bucket) begin() {
	b.pending = 0
	for _, e := range b.entries {
		if e.pending = 0; !e.frozen {
			e.pending = e.uses
			b.pending++
		}
	}
}

// bind points the parameters' gradient slots at grad, as absent.
func (b *bucket) bind(grad device.Buf) {
	for _, e := range b.entries {
		if b.table != nil {
			e.param.Bind(0, e.slot(grad, 0))
			continue
		}
		for use := range e.uses {
			e.param.Bind(use, e.slot(grad, use))
		}
	}
}

// slot is the gradient of a use in grad, which is laid out as the bucket's.
func (e *entry) slot(grad device.Buf, use int) device.Buf {
	at := e.offset
	switch {
	case use > 0 && len(e.extras) > 0:
		return e.extras[use-1]
	case use > 0:
		at = e.more + (use-1)*roundUp(e.param.Space(), device.NormBlock)
	}
	return grad.Slice(at, at+e.param.Len())
}

// apart returns how many uses have a sum of their own in grad.
func (e *entry) apart() int {
	if len(e.extras) > 0 || e.bucket.table != nil {
		return 1
	}
	return e.uses
}

// foldUses adds the later uses' sums to the first's, in the order of use; those
// of a tied parameter are left to its tie.
func (b *bucket) foldUses() {
	for _, e := range b.entries {
		for use := 1; use < e.apart() && !e.tied; use++ {
			addInto(e.slot(b.grad, 0), e.slot(b.grad, use))
		}
	}
}

func roundUp(n, k int) int { return (n + k - 1) / k * k }
