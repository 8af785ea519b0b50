package parallel

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Whole puts tensors together of which each partner has a part, in new memory on
// every partner; others it passes on. part tells what a tensor is a part of, nil
// for none: a parameter, its gradient, or optimizer state of its length. It is
// collective: all partners list the same tensors in the same order.
func (p *Partners) Whole(ctx context.Context, tensors []Named, part func(Named) *nn.Part) ([]Named, error) {
	out := slices.Clone(tensors)
	var works []*collective.Work
	for i, t := range tensors {
		of := part(t)
		if of == nil {
			continue
		}
		whole := device.FromF32(make([]float32, of.WholeLen()))
		of.Put(whole.F32(), t.Buf.F32())
		out[i] = Named{t.Name, []int{whole.Len}, whole}
		if slices.Equal(t.Shape, of.Shape()) {
			out[i].Shape = of.Whole
		}
		// The others hold zeros here: a sum of integers keeps all bits.
		call := collective.Call{Kind: plan.AllReduce, In: whole.As(device.I32), Label: t.Name}
		works = append(works, p.comm.Start(ctx, call))
	}
	for _, w := range works {
		if err := w.Wait(ctx); err != nil {
			return nil, fmt.Errorf("putting parts of tensors together: %w", err)
		}
	}
	return out, nil
}

// Verify compares what all partners should hold alike, which is what no layer
// cuts, and names the first tensor that differs. It is collective.
func (p *Partners) Verify(ctx context.Context, params []*nn.Param) error {
	var alike []Named
	for _, t := range params {
		if t.Part == nil {
			alike = append(alike, Named{t.Name, t.Shape, t.Value})
		}
	}
	name, r, err := firstTensor(ctx, p.comm, alike)
	if err != nil || r < 0 {
		return err
	}
	return fmt.Errorf("%w: of those that share layers, rank %d has another %s than rank 0", ErrDiffer, r, name)
}
