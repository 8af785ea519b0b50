package parallel

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// A parameter that is trainable when the GradFusion is made has a place in a
// bucket for good. Between two steps, before Micros, all ranks may set
// nn.Param.Frozen: then it contributes nothing to sums and norms, and keeps its
// value and its optimizer's state, until it is set back. A bucket that is wholly
// frozen is not sent from the second such step on. One that was frozen from the
// start has no place, and setting it back is an error of Wait.

// freeze notes what is frozen in the step that begins.
func (r *reducer) freeze(b *bucket) {
	before := b.frozen
	b.frozen = true
	changed := false
	for _, e := range b.entries {
		changed = changed || e.frozen != e.param.Frozen
		e.frozen = e.param.Frozen
		b.frozen = b.frozen && e.frozen
	}
	b.skipped = b.frozen && before
	if changed {
		r.clearFrozen(b, b.grad)
	}
}

// clearFrozen zeroes the gradients of frozen parameters in grad, which is laid
// out as the bucket's.
func (r *reducer) clearFrozen(b *bucket, grad device.Buf) {
	for _, e := range b.entries {
		if !e.frozen {
			continue
		}
		if b.table != nil {
			e.param.ZeroGrad()
			continue
		}
		for use := range e.uses {
			r.cfg.Device.Kernels().Fill(e.slot(grad, use), 0)
		}
	}
}

// unfrozen refuses parameters that have no place in a bucket.
func (g *GradFusion) unfrozen() error {
	for _, s := range g.stages {
		if len(s.reducer.params) == len(s.params) || s.reducer.entries == nil {
			continue
		}
		for _, p := range s.params {
			if _, ok := s.reducer.entries[p]; !ok && !p.Frozen {
				return fmt.Errorf("%s was frozen when the GradFusion was made and has no place in a bucket: make it trainable before that, and freeze it before the first step", p.Name)
			}
		}
	}
	return nil
}

// frozenDigest is a number of 52 bits that tells apart what ranks have frozen; 0
// for nothing.
func (g *GradFusion) frozenDigest() float64 {
	names := g.frozenNames()
	if names == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(names))
	return float64(h.Sum64()>>12 | 1)
}

// frozenNames lists what this rank has frozen since the GradFusion was made.
func (g *GradFusion) frozenNames() string {
	var names []string
	for _, s := range g.stages {
		for _, p := range s.reducer.params {
			if p.Frozen {
				names = append(names, p.Name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// compareFrozen returns the same error on all ranks when those of a stage have
// frozen different parameters.
func (g *GradFusion) compareFrozen(ctx context.Context, w *layout) error {
	differ := false
	digest := func(rank int) float64 { return g.leaves.all[g.leaves.bounds[rank]+1] }
	for p := range w.places {
		differ = differ || digest(p) != digest(w.twin(p))
	}
	if !differ {
		return nil
	}
	all, err := collective.GatherBytes(ctx, w.world, []byte(g.frozenNames()), "frozen parameters")
	if err != nil {
		return err
	}
	for p := range all {
		q := w.twin(p)
		if a, b := string(all[q]), string(all[p]); a != b {
			return fmt.Errorf("%w: rank %d has frozen %s, rank %d %s", ErrDiffer, q, orNothing(a), p, orNothing(b))
		}
	}
	return errors.New("parallel: the ranks have frozen different parameters")
}

// twin is the lowest rank that holds the same stages as a rank.
func (l *layout) twin(rank int) int {
	p := l.places[rank]
	for q := range rank {
		if l.places[q].first == p.first && l.places[q].last == p.last {
			return q
		}
	}
	return rank
}

func orNothing(names string) string {
	if names == "" {
		return "nothing"
	}
	return names
}
