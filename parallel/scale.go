package parallel

import (
	"math"
	"strings"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Overflow tells of a step that was skipped because its loss or a gradient was
// no finite number.
type Overflow struct {
	Step int
	// Rank is the lowest rank of the world whose own gradients were not finite,
	// before any sum; -1 where only the loss was not.
	Rank int
	// Param is the first such parameter of that rank, in the order in which
	// gradients become complete, Layer what it belongs to and Bucket how its bucket
	// is called. They are empty on a rank that holds other stages.
	Param, Layer, Bucket string
	Scale, Next          float64 // the loss scale, and that of the next step
	// Stuck is how many steps in a row overflowed that could not halve the scale.
	Stuck int
}

// scaling is the mixed precision of a GradFusion.
type scaling struct {
	skip   bool // the present step
	found  Overflow
	params []trainedParam
	half   device.Buf // scratch of roundMasters
}

// lossScale is what losses are multiplied by.
func (g *GradFusion) lossScale() float64 {
	if g.cfg.Scaler == nil {
		return 1
	}
	return g.cfg.Scaler.Scale()
}

// scan looks at this rank's gradients of a bucket before they are summed and
// remembers the first one that is no finite number. A gradient that would only
// be none after the sum counts too: its block of device.NormBlock elements has a
// norm above the largest number that the wire carries divided by the ranks.
func (r *reducer) scan(b *bucket) {
	if r.cfg.Scaler == nil || r.overflow != nil {
		return
	}
	switch {
	case b.table != nil:
		r.scanTable(b)
	case !r.cfg.Deterministic:
		r.scanBuffer(b, b.grad)
	default:
		for _, n := range b.tree.nodes {
			r.scanBuffer(b, n.buf)
		}
	}
}

// scanTable looks at the rows that were touched.
func (r *reducer) scanTable(b *bucket) {
	t := b.table
	if r.cfg.Deterministic {
		for _, n := range t.tree.nodes {
			r.scanBuffer(b, n.grad.Values)
		}
		return
	}
	rows, all := t.param.TouchedRows()
	if all {
		r.scanBuffer(b, t.grad)
	}
	for _, i := range rows {
		r.scanBuffer(b, t.grad.Slice(int(i)*t.width, int(i+1)*t.width))
	}
}

func (r *reducer) scanBuffer(b *bucket, grad device.Buf) {
	n := blocks(grad.Len)
	if len(r.squares) < n {
		r.squares = make([]float64, n)
	}
	r.cfg.Device.Kernels().SumSquares(device.FromF64(r.squares[:n]), grad)
	limit := r.cfg.Wire.largest() / float64(r.comm.Size())
	for i, v := range r.squares[:n] {
		if !(v <= limit*limit) {
			r.overflow = b.entryAt(i * device.NormBlock) // of a table, the only one
			return
		}
	}
}

// entryAt is the parameter that an element of the bucket's gradients belongs to.
func (b *bucket) entryAt(element int) *entry {
	for i := len(b.entries) - 1; i >= 0; i-- {
		e := b.entries[i]
		if element >= b.size && e.uses > 1 && element >= e.more || element < b.size && element >= e.offset {
			return e
		}
	}
	return b.entries[0]
}

// The bits of a verdict about gradients: whether they overflowed, and above it
// the place of the parameter among those of the rank's stages.
const overflowed = 1

// inspect returns what this rank found out about its gradients, of which all
// ranks learn before anything is updated.
func (g *GradFusion) inspect() uint64 {
	for i, p := range g.trained() {
		if e := p.reducer.overflow; e != nil && e.param == p.param {
			const most = 1<<20 - 1
			return overflowed | uint64(min(i, most))<<1
		}
	}
	return 0
}

// trained lists the parameters of the rank's stages.
func (g *GradFusion) trained() []trainedParam {
	if g.scaling.params == nil {
		for _, s := range g.stages {
			for _, p := range s.reducer.params {
				g.scaling.params = append(g.scaling.params, trainedParam{s.reducer, p})
			}
		}
	}
	return g.scaling.params
}

type trainedParam struct {
	reducer *reducer
	param   *nn.Param
}

// judge decides from all ranks' verdicts and the loss whether the step is
// skipped.
func (g *GradFusion) judge() {
	g.skip = false
	if g.cfg.Scaler == nil {
		return
	}
	g.outcome.LossScale = g.lossScale()
	l, w := &g.leaves, &g.layout
	found := Overflow{Step: g.step + 1, Rank: -1, Scale: g.lossScale()}
	for r := len(w.places) - 1; r >= 0; r-- {
		verdict := uint64(l.all[l.bounds[r]]) >> verdictShift
		if verdict&overflowed == 0 {
			continue
		}
		found.Rank, found.Param, found.Layer, found.Bucket = r, "", "", ""
		place, own := w.places[r], w.places[w.own]
		if place.first != own.first || place.last != own.last {
			continue
		}
		p := g.trained()[min(int(verdict>>1), len(g.trained())-1)]
		found.Param, found.Layer = p.param.Name, p.param.Name
		if i := strings.LastIndexByte(found.Param, '.'); i > 0 {
			found.Layer = found.Param[:i]
		}
		if e := p.reducer.entries[p.param]; e != nil {
			found.Bucket = e.bucket.label
		}
	}
	if found.Rank < 0 && !math.IsNaN(g.outcome.Loss) && !math.IsInf(g.outcome.Loss, 0) {
		return
	}
	g.skip, g.found = true, found
	g.outcome.Skipped = true
}

// Overflow returns why the last step was skipped, when Outcome says that it was.
// Next and Stuck are known when Step has returned.
func (g *GradFusion) Overflow() Overflow { return g.found }

// updates is how many updates the optimizer will have seen after the present
// step's: those that were skipped do not count.
func (g *GradFusion) updates() int {
	if g.cfg.Scaler == nil {
		return g.step
	}
	return g.step - g.cfg.Scaler.Skipped()
}

// scaled ends a step for the loss scale.
func (g *GradFusion) scaled() (err error) {
	if g.cfg.Scaler == nil {
		return nil
	}
	g.found.Stuck, err = g.cfg.Scaler.Done(g.skip)
	g.found.Next = g.lossScale()
	return err
}

// changed tells the parameters that their masters have other values.
func (g *GradFusion) changed() {
	for _, s := range g.stages {
		for _, p := range s.params {
			p.Changed()
		}
	}
}

// roundMasters leaves numbers of cfg.Masters in b.
func (g *GradFusion) roundMasters(b device.Buf) error {
	if g.cfg.Masters == device.F32 || b.IsZero() {
		return nil
	}
	if g.scaling.half.Len < b.Len {
		half, err := g.cfg.Device.Alloc(g.cfg.Masters, b.Len)
		if err != nil {
			return err
		}
		g.scaling.half = half
	}
	half := g.scaling.half.Slice(0, b.Len)
	g.cfg.Device.Kernels().Cast(half, b)
	g.cfg.Device.Kernels().Cast(b, half)
	return nil
}
