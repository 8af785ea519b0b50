package parallel

import (
	"context"
	"fmt"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// timing finds the order in which a GradFusion that defers sends its buckets. All
// ranks must send in one order, so it is no matter of who is ready: rank 0 measures,
// and the others are told.
//
//	step 1                   as ever: buckets are cut, memory is touched
//	to step probedSteps      the buckets' calls run one after another when the
//	                         backward pass is over: what they cost, when they are
//	                         ready, when the forward pass needs them
//	to step observedSteps    in the order of that; when they are ready while calls
//	                         run beside, which take processor time
//	from then on             in the order of that
type timing struct {
	steps   int // done
	started time.Time
	armed   time.Time
	before  leastTime // from the beginning of a step to its last backward pass
	times   []bucketTimes
}

// bucketTimes are of one bucket.
type bucketTimes struct {
	cost  leastTime // of its call
	ready meanTime  // after the last backward pass has begun
	need  leastTime // after the step has begun
	found bool      // need is known in the present step
}

// leastTime is the shortest of some times.
type leastTime struct {
	time.Duration
	known bool // there was one
}

func (l *leastTime) add(d time.Duration) {
	if !l.known || d < l.Duration {
		l.Duration, l.known = d, true
	}
}

const (
	probedSteps   = 3
	observedSteps = 8
)

// beside is by how much calls that run beside a backward pass lengthen it, until
// that is measured.
const beside = 1.25

// probes reports whether the present step's sums do not go on beside the next.
func (t *timing) probes() bool { return t.steps < probedSteps }

// alone reports whether the present step's calls run one after another.
func (t *timing) alone() bool { return t.probes() && t.steps > 0 }

func (t *timing) measures() bool { return t.steps > 0 && t.steps < observedSteps }

// begin is called when a step begins.
func (t *timing) begin() {
	if !t.measures() {
		return
	}
	t.started = time.Now()
	for i := range t.times {
		t.times[i].found = false
	}
}

// meanTime is the mean of some times.
type meanTime struct {
	sum   time.Duration
	count int
}

func (m *meanTime) add(d time.Duration) { m.sum, m.count = m.sum+d, m.count+1 }

func (m *meanTime) mean() time.Duration { return m.sum / time.Duration(max(m.count, 1)) }

// used notes the first use of a bucket in a step.
func (t *timing) used(b *bucket) {
	if !t.alone() || b.index >= len(t.times) || t.times[b.index].found {
		return
	}
	x := &t.times[b.index]
	x.found = true
	x.need.add(time.Since(t.started))
}

// backward is called when a backward pass begins; the last one of a step is armed.
func (t *timing) backward(armed bool) {
	if !t.measures() || !armed {
		return
	}
	t.armed = time.Now()
	if t.alone() {
		t.before.add(t.armed.Sub(t.started))
	}
}

// ready notes that a bucket is complete on this rank.
func (t *timing) ready(b *bucket) {
	if t.measures() && b.index < len(t.times) {
		t.times[b.index].ready.add(time.Since(t.armed))
	}
}

// probe runs the buckets' calls one after another. All ranks begin together, so
// that what a call takes is not another rank's backward pass.
func (t *timing) probe(ctx context.Context, r *reducer, empty bool) error {
	if err := r.comm.Start(ctx, collective.Call{Kind: plan.Barrier, Label: "begin of sums"}).Wait(ctx); err != nil {
		return err
	}
	for r.next < len(r.sequence) {
		b := r.buckets[r.sequence[r.next]]
		start := time.Now()
		r.releaseNext(empty)
		if err := b.work.Wait(ctx); err != nil {
			return fmt.Errorf("%s: %w", b.label, err)
		}
		t.times[b.index].cost.add(time.Since(start))
	}
	return nil
}

// next ends a step, of which err is what happened otherwise.
func (t *timing) next(g *GradFusion, err error) error {
	r := g.stages[0].reducer
	if err != nil || r.comm.Size() == 1 {
		return err
	}
	t.steps++
	switch t.steps {
	case 1:
		t.times = make([]bucketTimes, len(r.buckets))
		return nil
	case probedSteps:
		err = t.agree(g, beside)
		for i := range t.times {
			t.times[i].ready = meanTime{}
		}
		return err
	case observedSteps:
		return t.agree(g, 1)
	}
	return nil
}

// agree makes all ranks send in the order that rank 0's times give. It is
// collective, and waits for all sums: the Comm is theirs.
func (t *timing) agree(g *GradFusion, slower float64) error {
	if err := g.landAll(g.ctx); err != nil {
		return err
	}
	r := g.stages[0].reducer
	order := make([]int32, len(r.buckets))
	for i, k := range SendOrder(t.sends(slower), t.before.Duration) {
		order[i] = int32(k)
	}
	call := collective.Call{Kind: plan.Broadcast, In: device.FromI32(order), Label: "order of the buckets"}
	if err := r.comm.Start(g.ctx, call).Wait(g.ctx); err != nil {
		return fmt.Errorf("agreeing on the order of the buckets: %w", err)
	}
	for i, k := range order {
		r.sequence[i] = int(k)
	}
	return nil
}

func (t *timing) sends(slower float64) []Send {
	out := make([]Send, len(t.times))
	for i, x := range t.times {
		out[i] = Send{Ready: time.Duration(float64(x.ready.mean()) * slower), Cost: x.cost.Duration, Need: x.need.Duration}
		if !x.need.known {
			out[i].Need = t.before.Duration // unused: before the backward pass
		}
	}
	return out
}
