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
}

// leaves collects what each micro-batch of this rank's run tells besides its
// gradient, and afterwards that of all ranks: the rank's votes, then a row of
// numbers per micro-batch.
//
//	loss sum, correct, counted, then per BatchNorm: count, means, sums of squares
type leaves struct {
	lo, hi, count int
	own, all      []float64
	rows          [][]float64 // of all micro-batches, in order, in all
	width         int
	moments       []nn.Moments
	bounds        []int
}

const leafHead = 3

func (l *leaves) begin(lo, hi, count int) {
	l.lo, l.hi, l.count = lo, hi, count
	l.own = append(l.own[:0], 0)
}

func rowWidth(running []*nn.Running) int {
	w := leafHead
	for _, r := range running {
		w += 1 + 2*r.Channels
	}
	return w
}

// add appends the row of a micro-batch whose forward pass has emitted moments.
func (l *leaves) add(m Micro, score nn.Score, running []*nn.Running) {
	l.own = append(l.own, score.Sum(), float64(score.Correct()), float64(score.Count))
	for _, r := range running {
		e := r.Emitted()
		if n := len(e); n > 0 && e[n-1].Leaf == m.Index {
			l.own = append(l.own, float64(e[n-1].Count))
			l.own = append(l.own, e[n-1].Mean...)
			l.own = append(l.own, e[n-1].M2...)
			continue
		}
		for range 1 + 2*r.Channels {
			l.own = append(l.own, 0)
		}
	}
}

// Vote sets bits that every rank learns of in the Outcome of the present step's
// Wait: how ranks agree to stop, or that something is due.
func (g *GradFusion) Vote(bits uint32) { g.votes |= bits }

// mergeLeaves gathers the rows of all ranks and folds them in the order of the
// micro-batches: the outcome, and the running statistics.
func (g *GradFusion) mergeLeaves(ctx context.Context) error {
	l := &g.leaves
	l.width = rowWidth(g.running)
	l.own[0], g.votes = float64(g.votes), 0
	ranks := g.comm.Size()
	l.bounds = append(l.bounds[:0], 0)
	for p := range ranks {
		lo, hi := data.Run(l.count, ranks, p)
		l.bounds = append(l.bounds, l.bounds[p]+1+(hi-lo)*l.width)
	}
	if n := l.bounds[ranks]; cap(l.all) < n {
		l.all = make([]float64, n)
	} else {
		l.all = l.all[:n]
	}
	if ranks == 1 {
		copy(l.all, l.own)
	} else {
		call := collective.Call{Kind: plan.AllGather, In: device.FromF64(l.own), Out: device.FromF64(l.all), InBounds: l.bounds, Label: "losses and running statistics"}
		if err := g.comm.Start(ctx, call).Wait(ctx); err != nil {
			return fmt.Errorf("merging running statistics: %w", err)
		}
	}
	l.index()
	g.outcome = l.outcome()
	l.update(g.running)
	return nil
}

// index finds the row of each micro-batch in what was gathered.
func (l *leaves) index() {
	l.rows = l.rows[:0]
	for p := range len(l.bounds) - 1 {
		for at := l.bounds[p] + 1; at < l.bounds[p+1]; at += l.width {
			l.rows = append(l.rows, l.all[at:at+l.width])
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
	for p := range len(l.bounds) - 1 {
		o.Votes |= uint32(l.all[l.bounds[p]])
	}
	o.Counted = int(counted)
	if counted > 0 {
		o.Loss = sum / counted
	}
	return o
}

func (l *leaves) update(running []*nn.Running) {
	at := leafHead
	for _, r := range running {
		l.moments = l.moments[:0]
		for i := range l.rows {
			row := l.rows[i][at:]
			c := r.Channels
			l.moments = append(l.moments, nn.Moments{Leaf: i, Count: int(row[0]), Mean: row[1 : 1+c], M2: row[1+c : 1+2*c]})
		}
		r.Update(l.moments)
		at += 1 + 2*r.Channels
	}
}
