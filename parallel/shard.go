package parallel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/optim"
)

// A sharded optimizer (ZeRO stage 1, Rajbhandari et al. 2020) keeps the state of
// each element on one rank of the stage. Of a bucket of n elements and R ranks:
//
//	reduce-scatter of the gradients     n (R-1)/R elements sent by a rank
//	update of the own n/R elements
//	all-gather of the parameters        n (R-1)/R, during the next forward pass
//
// which is what an all-reduce sends. The parameters of a bucket are waited for
// when the first of them is used: the buckets travel in the order of the forward
// pass, the reverse of theirs. Ranks that share memory read each other's parts
// instead.

// shard cuts a bucket over the ranks of its stage, on multiples of
// device.NormBlock.
func (b *bucket) shard(ranks int) {
	b.bounds = plan.Cut(b.size/device.NormBlock, ranks)
	for i := range b.bounds {
		b.bounds[i] *= device.NormBlock
	}
}

// scattered reports whether the reduction may leave each rank with the sum over
// its own part of the bucket only: not where whole sums are added up afterwards.
func (b *bucket) scattered() bool {
	if b.bounds == nil || b.grad.Len != b.size || b.table != nil {
		return false
	}
	for _, e := range b.entries {
		if e.tied {
			return false
		}
	}
	return true
}

// own returns the part of a parameter that a rank updates; it is empty if lo =
// hi.
func (e *entry) own(rank int) (lo, hi int) {
	b, n := e.bucket, e.param.Len()
	if b.bounds == nil {
		return 0, n
	}
	lo = min(max(b.bounds[rank]-e.offset, 0), n)
	hi = min(max(b.bounds[rank+1]-e.offset, 0), n)
	return lo, hi
}

// parts returns the offsets in a parameter of the parts of all ranks.
func (e *entry) parts(ranks int) []int {
	out := make([]int, ranks+1)
	for r := range ranks {
		_, out[r+1] = e.own(r)
	}
	return out
}

// segment returns what this rank updates of a parameter, and whether that is
// anything.
func (r *reducer) segment(e *entry) (s optim.Segment, ok bool) {
	lo, hi := e.own(r.comm.Rank())
	return optim.Segment{Param: e.param, Lo: lo, Hi: hi, Grad: e.bucket.grad.Slice(e.offset+lo, e.offset+hi)}, lo < hi
}

// BucketLabel begins the labels of calls that sum a bucket.
const BucketLabel = "bucket "

// ParametersLabel begins the labels of calls that give the ranks each other's
// parameters after a Step, and may run beside the next one.
const ParametersLabel = "parameters of "

// spread starts a call on the parameters of each bucket, for which uses of them
// wait.
func (r *reducer) spread(call collective.Call) {
	for _, b := range slices.Backward(r.buckets) {
		call.In, call.InBounds, call.Label = b.values, b.bounds, b.spreadLabel
		b.spread = r.comm.Start(r.ctx, call)
	}
}

// sharesParameters reports whether this rank can read all ranks' parameters.
func (r *reducer) sharesParameters() bool {
	return len(r.buckets) > 0 && !slices.ContainsFunc(r.buckets, func(b *bucket) bool { return b.copies == nil })
}

// fetch is spread where ranks share memory: when all have updated their parts, each
// reads the others' parts into its own parameters. That is one round of the group for
// all buckets in place of two for each, and moves each part from processor to
// processor once; what an owner writes to all ranks moves again when they read it.
func (r *reducer) fetch() error {
	start := r.cfg.Events.Now()
	if err := r.barrier().Wait(r.ctx); err != nil {
		return err
	}
	begin, bytes := r.cfg.Events.Now(), 0
	own, ranks := r.comm.Rank(), r.comm.Size()
	for _, b := range r.buckets {
		for i := 1; i < ranks; i++ { // each begins with another peer
			r.fetchPart(b, (own+i)%ranks)
		}
		bytes += b.values.Slice(b.bounds[own], b.bounds[own+1]).Size()
	}
	end := r.cfg.Events.Now()
	r.cfg.Events.Record(observe.Span{Kind: observe.Call, Lane: fetchLane, Name: r.fetchLabel, Start: begin, End: end,
		Bytes: int64(ranks-1) * int64(bytes)}) // once, as calls on shared memory count
	r.cfg.Events.Record(observe.Span{Kind: observe.Exposed, Lane: "compute", Name: "fetch parameters", Start: start, End: end})
	r.fetched = r.barrier()
	return nil
}

// fetchPart reads the part of a bucket that peer has updated. Large copies would go
// past the cache, where the next forward pass had to read it again.
func (r *reducer) fetchPart(b *bucket, peer int) {
	const most = 32 << 10 // elements
	for lo, end := b.bounds[peer], b.bounds[peer+1]; lo < end; lo += most {
		hi := min(lo+most, end)
		r.cfg.Device.Kernels().Copy(b.values.Slice(lo, hi), b.copies[peer].Slice(lo, hi))
	}
}

// fetchLane is where spans show how a rank reads the other ranks' parameters.
const fetchLane = "parameters"

// labelOf is what fetch does, for reports: it names the first of the buckets.
func labelOf(buckets []*bucket) string {
	const most = 3
	var labels []string
	for _, b := range buckets[:min(len(buckets), most)] {
		labels = append(labels, b.label)
	}
	if more := len(buckets) - most; more > 0 {
		labels = append(labels, fmt.Sprintf("%d more", more))
	}
	return ParametersLabel + strings.Join(labels, ", ")
}

func (r *reducer) barrier() *collective.Work {
	return r.comm.Start(r.ctx, collective.Call{Kind: plan.Barrier, Label: r.fetchLabel})
}

// given waits until the other ranks have read what this one has updated.
func (r *reducer) given(ctx context.Context) error {
	if r.fetched == nil {
		return nil
	}
	err := r.fetched.Wait(ctx)
	if err == nil {
		r.fetched = nil
	}
	return err
}

// arrived waits until a bucket's parameters are those of all ranks.
func (r *reducer) arrived(ctx context.Context, b *bucket) error {
	if b.spread == nil {
		return nil
	}
	start := r.cfg.Events.Now()
	if err := b.spread.Wait(ctx); err != nil {
		return err // and again for whoever asks next
	}
	b.spread = nil
	r.cfg.Events.Record(observe.Span{Kind: observe.Exposed, Lane: "compute", Name: "wait for parameters", Start: start, End: r.cfg.Events.Now()})
	return nil
}

// Complete returns when all parameters have their values of the last Step on this
// rank, and no other reads them here. Only a sharded optimizer, averages of local SGD
// and Defer leave some on their way, which a forward pass waits for by itself; whoever
// reads, copies or changes parameters otherwise calls Complete first. It is not
// collective.
func (g *GradFusion) Complete(ctx context.Context) error {
	if err := g.landAll(ctx); err != nil {
		return err
	}
	for _, s := range g.stages {
		for _, b := range s.reducer.buckets {
			if err := s.reducer.arrived(ctx, b); err != nil {
				return g.stageNamed(s, err)
			}
		}
		if err := s.reducer.given(ctx); err != nil {
			return g.stageNamed(s, err)
		}
	}
	return nil
}

// spread ends a Step of a sharded optimizer: every rank of a stage is given the
// parameters that each has updated.
func (g *GradFusion) spread() error {
	if !g.cfg.Shard {
		return nil
	}
	for _, s := range g.stages {
		switch r := s.reducer; {
		case s.Comm.Size() == 1:
		case r.sharesParameters():
			if err := r.fetch(); err != nil {
				return g.stageNamed(s, err)
			}
		default:
			r.spread(collective.Call{Kind: plan.AllGather})
		}
	}
	if g.cfg.NoOverlap {
		return g.Complete(g.ctx)
	}
	return nil
}
