package parallel

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Outcome is what a step found out, equal on all ranks.
type Outcome struct {
	Loss     float64 // mean over the counted samples of the step
	Correct  int     // samples classified rightly
	Counted  int     // samples that counted
	GradNorm float64 // of the summed gradient before clipping; 0 without clipping
	Votes    uint32  // the bits that any rank has voted for

	LossScale float64 // 0 without a Scaler
	Skipped   bool    // see FusionConfig.Scaler; Step changes nothing
}

// leaves collects what each micro-batch of this rank's run tells besides its
// gradient, and afterwards that of all ranks of the world: per rank its verdict
// and the digest of what it has frozen, then a row of numbers per micro-batch of
// its run.
//
//	loss sum, correct, counted, then per BatchNorm of its stages: count, means, sums of squares
//
// The row of a rank that does not compute the loss starts with zeros.
type leaves struct {
	lo, hi, count int
	samples       int // of the step, over all ranks
	ran           int // the micro-batch that comes next
	width         int // of this rank's rows
	own, all      []float64
	bounds        []int       // of the ranks in all
	rows          [][]float64 // of all micro-batches in order, see gathered
	moments       []nn.Moments
}

const leafHead = 3

// leafStart is how many numbers come before a rank's rows: its verdict, and the
// digest of what it has frozen.
const leafStart = 2

func (l *leaves) begin(lo, hi, count int) {
	l.lo, l.hi, l.count, l.ran = lo, hi, count, lo
	n := leafStart + (hi-lo)*l.width
	if cap(l.own) < n {
		l.own = make([]float64, n)
	}
	l.own = l.own[:n]
	clear(l.own)
}

// row is where this rank writes what a micro-batch of its run tells.
func (l *leaves) row(micro int) []float64 {
	at := leafStart + (micro-l.lo)*l.width
	return l.own[at : at+l.width]
}

func runningWidth(running []*nn.Running) (w int) {
	for _, r := range running {
		w += 1 + 2*r.Channels
	}
	return w
}

// scored notes the score of a micro-batch.
func (l *leaves) scored(m Micro, s nn.Score) {
	row := l.row(m.Index)
	row[0], row[1], row[2] = s.Sum(), float64(s.Correct()), float64(s.Count)
}

// emitted notes what forward passes have emitted since the last step, in rows
// at offset.
func (l *leaves) emitted(running []*nn.Running, offset int) {
	for _, r := range running {
		for _, e := range r.Emitted() {
			if e.Leaf < l.lo || e.Leaf >= l.hi {
				continue
			}
			row := l.row(e.Leaf)[offset:]
			row[0] = float64(e.Count)
			copy(row[1:], e.Mean)
			copy(row[1+r.Channels:], e.M2)
		}
		offset += 1 + 2*r.Channels
	}
}

// mergeLeaves gathers the rows of all ranks and folds them in the order of the
// micro-batches: the outcome, and the running statistics.
func (g *GradFusion) mergeLeaves(ctx context.Context, verdict uint64) (agreed uint64, err error) {
	l := &g.leaves
	if l.own[0] = float64(verdict); g.failed != nil {
		l.own[0] = -1
	}
	l.own[1] = g.frozenDigest()
	for _, s := range g.stages {
		l.emitted(s.running, s.offset)
	}
	w := g.scope()
	if err := l.gather(ctx, *w); err != nil {
		return 0, err
	}
	if err := g.failures(ctx, w); err != nil {
		return 0, err
	}
	if err := g.compareFrozen(ctx, w); err != nil {
		return 0, err
	}
	for p := range w.places {
		agreed |= uint64(l.all[l.bounds[p]])
	}
	l.gathered(*w, w.losses)
	g.outcome = l.outcome()
	g.judge()
	if err := l.finite(g.step+1, w); err != nil && !g.skip {
		return 0, err
	}
	g.weigh()
	l.gathered(*w, w.twins)
	if g.skip {
		l.rows = l.rows[:0] // nothing of a skipped step is kept
	}
	for _, s := range g.stages {
		l.update(s.running, s.offset)
	}
	return agreed, nil
}

func (l *leaves) gather(ctx context.Context, w layout) error {
	l.bounds = append(l.bounds[:0], 0)
	for p, place := range w.places {
		lo, hi := data.Run(l.count, place.columns, place.column)
		l.bounds = append(l.bounds, l.bounds[p]+leafStart+(hi-lo)*place.width)
	}
	if n := l.bounds[len(w.places)]; cap(l.all) < n {
		l.all = make([]float64, n)
	} else {
		l.all = l.all[:n]
	}
	if len(w.places) == 1 {
		copy(l.all, l.own)
		return nil
	}
	call := collective.Call{Kind: plan.AllGather, In: device.FromF64(l.own), Out: device.FromF64(l.all), InBounds: l.bounds, Label: "losses and running statistics"}
	if err := w.world.Start(ctx, call).Wait(ctx); err != nil {
		return fmt.Errorf("merging losses and running statistics: %w", err)
	}
	return nil
}

// gathered lists the rows of all micro-batches, from one rank of each column.
func (l *leaves) gathered(w layout, ranks []int) {
	l.rows = l.rows[:0]
	for _, r := range ranks {
		width := w.places[r].width
		for at := l.bounds[r] + leafStart; at < l.bounds[r+1]; at += width {
			l.rows = append(l.rows, l.all[at:at+width])
		}
	}
}

func (l *leaves) outcome() (o Outcome) {
	sum, counted := 0.0, 0.0
	for _, row := range l.rows {
		sum += row[0]
		o.Correct += int(row[1])
		counted += row[2]
	}
	o.Counted = int(counted)
	if counted > 0 {
		o.Loss = sum / counted
	}
	return o
}

func (l *leaves) update(running []*nn.Running, offset int) {
	for _, r := range running {
		l.moments = l.moments[:0]
		for i := range l.rows {
			row := l.rows[i][offset:]
			c := r.Channels
			l.moments = append(l.moments, nn.Moments{Leaf: i, Count: int(row[0]), Mean: row[1 : 1+c], M2: row[1+c : 1+2*c]})
		}
		r.Update(l.moments)
		offset += 1 + 2*r.Channels
	}
}
