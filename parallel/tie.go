package parallel

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// tie is a parameter that several stages of a column hold copies of, some of
// them perhaps on this rank. When each stage has summed the gradients of its own
// uses, they go to all others, and the sums of all uses are added in the order of the stages,
// as one process adds the uses of its one parameter.
type tie struct {
	name   string
	comm   collective.Comm // nil when all copies are here
	copies []tiedCopy      // of this rank, in the order of its stages

	bounds []int      // of the ranks in all, in elements
	order  []int      // where the uses' sums start in all, in the order of the stages
	all    device.Buf // the uses' sums

	list       []collective.PointToPoint
	sent, come *collective.Work // of a step's sums, to and from the others
	whole      bool             // what has come was all
}

type tiedCopy struct {
	stage *stage
	param *nn.Param
}

func (c tiedCopy) entry() *entry { return c.stage.reducer.entries[c.param] }

// sum is that of the gradients of a use.
func (c tiedCopy) sum(use int) device.Buf {
	e := c.entry()
	return e.slot(e.bucket.grad, use)
}

// newTies lists the tied parameters that are trained, by name.
func newTies(stages []*stage) []*tie {
	byName := map[string]*tie{}
	for _, s := range stages {
		for _, p := range s.reducer.params {
			t := byName[p.Name]
			if t == nil {
				t = &tie{name: p.Name}
				byName[p.Name] = t
			}
			t.copies = append(t.copies, tiedCopy{s, p})
			if c := s.Tied[p.Name]; c != nil {
				t.comm = c
			}
		}
	}
	var ties []*tie
	for _, t := range byName {
		if t.comm == nil && len(t.copies) == 1 {
			continue
		}
		for _, c := range t.copies {
			c.stage.reducer.tied[c.param] = true
		}
		ties = append(ties, t)
	}
	slices.SortFunc(ties, func(a, b *tie) int { return strings.Compare(a.name, b.name) })
	return ties
}

// synchronise gives all copies the first one's values.
func (t *tie) synchronise(ctx context.Context) error {
	first := t.copies[0].param
	if t.comm != nil {
		call := collective.Call{Kind: plan.Broadcast, In: first.Value, Label: t.name}
		if err := t.comm.Start(ctx, call).Wait(ctx); err != nil {
			return fmt.Errorf("taking the first stage's %s: %w", t.name, err)
		}
	}
	for _, c := range t.copies[1:] {
		if c.param == first {
			return fmt.Errorf("parallel: stages %d and %d hold one and the same parameter %s: give each a copy, of its own name or of one name",
				t.copies[0].stage.Index, c.stage.Index, t.name)
		}
		if c.param.Len() != first.Len() {
			return fmt.Errorf("parallel: %s has %d elements in stage %d and %d in stage %d",
				t.name, first.Len(), t.copies[0].stage.Index, c.param.Len(), c.stage.Index)
		}
		copy(c.param.Value.F32(), first.Value.F32())
	}
	return nil
}

// verify compares the copies.
func (t *tie) verify(ctx context.Context, step int) error {
	own := fingerprint(Params([]*nn.Param{t.copies[0].param}))
	for _, c := range t.copies[1:] {
		if !bytes.Equal(own, fingerprint(Params([]*nn.Param{c.param}))) {
			return fmt.Errorf("%w after step %d: %s of stage %d is not what it is in stage %d", ErrDiffer, step, t.name, c.stage.Index, t.copies[0].stage.Index)
		}
	}
	if t.comm == nil {
		return nil
	}
	r, err := firstDifference(ctx, t.comm, own)
	if err == nil && r >= 0 {
		err = fmt.Errorf("%w after step %d: %s on rank %d of the stages that share it is not what it is on their rank 0", ErrDiffer, step, t.name, r)
	}
	return err
}

// arrange agrees on the places of the sums, once, when the buckets are cut. It
// is collective over the tie's Comm.
func (t *tie) arrange(ctx context.Context, dev device.Device) (err error) {
	var own []byte
	for _, c := range t.copies {
		own = binary.LittleEndian.AppendUint32(own, uint32(c.stage.Index))
		own = binary.LittleEndian.AppendUint32(own, uint32(c.entry().apart()))
	}
	lists := [][]byte{own}
	if t.comm != nil {
		if lists, err = collective.GatherBytes(ctx, t.comm, own, "uses of "+t.name); err != nil {
			return err
		}
	}
	type part struct{ stage, at int }
	var parts []part
	n := t.copies[0].param.Len()
	t.bounds, t.order = []int{0}, nil
	at := 0
	for _, list := range lists {
		for ; len(list) >= 8; list = list[8:] {
			for range binary.LittleEndian.Uint32(list[4:]) {
				parts = append(parts, part{int(binary.LittleEndian.Uint32(list)), at})
				at += n
			}
		}
		t.bounds = append(t.bounds, at)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return a.stage - b.stage })
	for _, p := range parts {
		t.order = append(t.order, p.at)
	}
	if t.comm != nil {
		t.all, err = t.comm.Alloc(ctx, device.F32, at)
	} else {
		t.all, err = dev.Alloc(device.F32, at)
	}
	if err != nil {
		return fmt.Errorf("memory for the gradients of %s: %w", t.name, err)
	}
	return nil
}

// start sends this rank's sums to the others, when it has them. Whoever is ready first
// need not wait for the others with that, as in one call of all, and the last one finds
// what it needs.
func (t *tie) start(ctx context.Context) error {
	own := 0
	if t.comm != nil {
		own = t.comm.Rank()
		if t.sent != nil {
			if err := t.sent.Wait(ctx); err != nil {
				return err
			}
		}
	}
	n, at := t.copies[0].param.Len(), t.bounds[own]
	for _, c := range t.copies {
		for use := range c.entry().apart() {
			copy(t.all.F32()[at:at+n], c.sum(use).F32())
			at += n
		}
	}
	if t.comm == nil {
		return nil
	}
	t.whole = false
	t.list = t.list[:0]
	for peer := range t.comm.Size() {
		if peer != own {
			t.list = appendPieces(t.list, peer, false, t.all.Slice(t.bounds[own], t.bounds[own+1]))
		}
	}
	t.sent = t.comm.Exchange(ctx, t.list)
	t.list = t.list[:0]
	for peer := range t.comm.Size() {
		if peer != own {
			t.list = appendPieces(t.list, peer, true, t.all.Slice(t.bounds[peer], t.bounds[peer+1]))
		}
	}
	t.come = t.comm.Exchange(ctx, t.list)
	return nil
}

// sum adds up the uses' sums, multiplies them by weight and gives the result to all
// copies of this rank.
func (t *tie) sum(ctx context.Context, kernels device.Kernels, weight float32) error {
	if t.comm != nil {
		if err := t.come.Wait(ctx); err != nil {
			return fmt.Errorf("gradients of %s: %w", t.name, err)
		}
		t.whole = true
	}
	n, total := t.copies[0].param.Len(), t.copies[0].sum(0)
	copy(total.F32(), t.all.F32()[t.order[0]:t.order[0]+n])
	for _, at := range t.order[1:] {
		addInto(total, t.all.Slice(at, at+n))
	}
	if weight != 1 {
		kernels.Scale(total, total, weight)
	}
	for _, c := range t.copies[1:] {
		copy(c.sum(0).F32(), total.F32())
	}
	return nil
}

// deliver waits until the others have what the last step has sent, if it went well.
func (t *tie) deliver(ctx context.Context) {
	if t.whole {
		_ = t.sent.Wait(ctx) // whoever closes asks for nothing more
	}
}
