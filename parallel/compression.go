package parallel

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/wire"
)

// PowerSGD is the format of low-rank factors (Vogels et al. 2019).
const PowerSGD = "powersgd"

// Compression is how gradients are encoded on their way; the zero value sends
// float32. With any other format results depend on the number of ranks, and are
// equal to the bit on all of them and from run to run.
type Compression struct {
	// Format is f32, f16, bf16, int8, int4, topk or powersgd. 16-bit floats are
	// summed in float32 and rounded once. The others keep on each rank what was
	// not sent and send it later (error feedback), which takes a float32 an
	// element, two for topk with Momentum.
	Format string
	// AcrossHosts encodes only what goes from host to host; inside a host sums
	// are in float32. Not for powersgd.
	AcrossHosts bool
	// Start is the first compressed step, counted from 1; those before it send
	// float32. Of topk it begins the warm-up: a quarter of the values is sent
	// first, and a quarter of that after every RampSteps steps, down to the
	// hundredth (Lin et al. 2018). 0 means 1, and 10 for powersgd, whose factors
	// are far off while gradients change fast.
	Start int
	Rank  int // powersgd: vectors of a factor; 0 means 4
	// Momentum of topk corrects for delay: a rank adds up the momentum's steps
	// until they are sent, in place of the optimizer, which must have none then.
	// 0 leaves momentum to the optimizer.
	Momentum float32
	Nesterov bool
	Seed     uint64 // of what is rounded at random
}

// RampSteps is how long top-k sends each share of its warm-up.
const RampSteps = 50

// CompressionFormats lists what Compression.Format may be.
func CompressionFormats() []string { return append(wire.Names(), PowerSGD) }

func (c Compression) off() bool { return c.Format == "" || c.Format == "f32" }

// keeps reports whether what was not sent is kept: of all formats but 16-bit
// floats.
func (c Compression) keeps() bool { return !c.off() && c.Format != "f16" && c.Format != "bf16" }

// largest is the largest number that a format can send.
func (c Compression) largest() float64 {
	if c.Format == "f16" {
		return 65504
	}
	return math.MaxFloat32
}

// check refuses what cannot be.
func (c Compression) check(cfg FusionConfig) error {
	switch {
	case c.off():
		return nil
	case !slices.Contains(CompressionFormats(), c.Format):
		return fmt.Errorf("parallel: unknown wire format %q (known: %s)", c.Format, strings.Join(CompressionFormats(), " "))
	case cfg.Deterministic:
		return fmt.Errorf("parallel: the wire format %s does not go with Deterministic: what it rounds depends on the number of ranks", c.Format)
	case cfg.LocalSGD > 0:
		return fmt.Errorf("parallel: the wire format %s does not go with LocalSGD, which sends no gradients", c.Format)
	case c.Momentum != 0 && c.Format != "topk":
		return fmt.Errorf("parallel: momentum of the wire is for topk, not %s", c.Format)
	case c.Format == PowerSGD && c.AcrossHosts:
		return errors.New("parallel: powersgd is not for the way between hosts alone: its factors are sums over all ranks")
	}
	return nil
}

func (c Compression) rank() int {
	if c.Rank == 0 {
		return 4
	}
	return c.Rank
}

func (c Compression) start() int {
	switch {
	case c.Start > 0:
		return c.Start
	case c.Format == PowerSGD:
		return 10
	}
	return 1
}

// share is what top-k sends in a step.
func (c Compression) share(step int) float64 {
	level := (step - c.start()) / RampSteps
	return max(0.25*math.Pow(0.25, float64(level)), 0.01)
}

// encodedReduction is one all-reduce a bucket, of encoded values.
type encodedReduction struct {
	r      *reducer
	c      Compression
	format wire.Format
	plain  *wire.Codec // of 16-bit floats, which keep nothing
	top    *wire.TopK  // of the present step
	share  float64     // that it sends
}

func newEncodedReduction(r *reducer) reduction {
	e := &encodedReduction{r: r, c: r.cfg.Wire}
	e.format, _ = wire.New(wire.Config{Name: e.c.Format}) // checked by NewGradFusion
	if half, ok := e.format.(*wire.Half); ok {
		e.plain = &wire.Codec{Format: half}
	}
	return e
}

func (e *encodedReduction) start(b *bucket) *collective.Work {
	return e.r.comm.Start(e.r.ctx, collective.Call{
		Kind: plan.AllReduce, In: b.grad, Codec: e.codec(b), AcrossHosts: e.c.AcrossHosts, Label: b.label,
	})
}

// codec is what encodes a bucket in the present step; nil for nothing.
func (e *encodedReduction) codec(b *bucket) collective.Codec {
	switch {
	case e.plain != nil:
		return e.plain
	case e.r.comm.Size() == 1 && e.c.Momentum == 0 && b.feedback == nil:
		return nil // nothing is sent, and nobody left anything
	}
	e.r.remember(b)
	f := b.feedback
	f.rescale(e.r.lossScale)
	f.base = wire.Seed(e.c.Seed, uint64(e.r.step), uint64(b.index), uint64(e.r.comm.Rank()))
	f.momentum, f.nesterov = e.c.Momentum, e.c.Nesterov
	f.format = e.format
	if e.r.comm.Size() == 1 || e.r.step < e.c.start() {
		f.dense(b.grad.F32())
		return nil
	}
	if e.c.Format == "topk" {
		if share := e.c.share(e.r.step); share != e.share {
			e.share, e.top = share, wire.NewTopK(share)
		}
		f.format = e.top
	}
	f.begin(b.grad.F32(), e.c.AcrossHosts)
	return f
}

// remember makes what a bucket keeps, unless it has that.
func (r *reducer) remember(b *bucket) {
	if b.feedback != nil {
		return
	}
	c := r.cfg.Wire
	vectors := 1
	if c.Momentum > 0 {
		vectors = 2
	}
	b.feedback = newFeedback(r.keep(b.size, vectors), c.Momentum > 0)
	if c.Format == PowerSGD {
		b.feedback.lowRank = newLowRankBucket(b, c.rank())
	}
}

// keep gives zeroed memory for that many vectors of the elements of a bucket that has
// no feedback yet. Those of all buckets lie in one run, as a bucket by itself is too
// small for huge pages, without which each step would look up the place of every small
// one.
func (r *reducer) keep(n, vectors int) []float32 {
	if len(r.kept) < n*vectors {
		all := 0
		for _, b := range r.buckets {
			if b.feedback == nil {
				all += b.size
			}
		}
		// The bucket may not be among them yet.
		memory, err := device.HostAlloc(device.F32, max(all, n)*vectors)
		if err != nil { // which is for sizes that no model has
			return make([]float32, n*vectors)
		}
		r.kept = memory.F32()
	}
	memory := r.kept[: n*vectors : n*vectors]
	r.kept = r.kept[n*vectors:]
	return memory
}

func (e *encodedReduction) close() {}
