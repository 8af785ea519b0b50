package parallel

import (
	"context"
	"math"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/optim"
)

// globalNorm is the norm of all gradients of the model: the squares of a
// parameter are summed where it is, in the canonical tree, and the parameters in
// the order of their names, so that it is equal to the bit however the model is
// cut. Of a tied parameter the first stage's copy counts.
type globalNorm struct {
	norm  *optim.Norm
	parts *parts // nil: every rank has all parameters wholly
}

// newGlobalNorm is collective over the world. stages has the stage of each
// segment; whole is false when a rank has a part of a parameter only.
func newGlobalNorm(ctx context.Context, dev device.Device, l layout, segments []optim.Segment, stages []int, whole bool) (*globalNorm, error) {
	norm, err := optim.NewNorm(dev, segments)
	if err != nil {
		return nil, err
	}
	n := &globalNorm{norm: norm}
	if whole && !l.cut() {
		return n, nil
	}
	n.parts, err = newParts(ctx, l.world, segments, stages)
	return n, err
}

// compute returns the norm, on every rank; it is collective over the world if
// the model is cut.
func (n *globalNorm) compute(ctx context.Context, segments []optim.Segment) (float64, error) {
	if n.parts == nil {
		return n.norm.Global(segments)
	}
	if err := n.norm.Blocks(segments); err != nil {
		return 0, err
	}
	if err := n.parts.exchange(ctx, segments, n.norm); err != nil {
		return 0, err
	}
	total := 0.0
	for _, sum := range n.parts.totals[0] {
		total += sum
	}
	return math.Sqrt(total), nil
}

// layered gives an optimizer that scales its updates by norms of whole parameters
// what it cannot know by itself; it is collective like compute.
func (n *globalNorm) layered(ctx context.Context, opt optim.Optimizer, step int, segments []optim.Segment, scale float32) error {
	o, ok := opt.(optim.Layered)
	if !ok || n.parts == nil {
		return nil
	}
	weights, updates, err := o.Norms(step, segments, scale)
	if err != nil {
		return err
	}
	p := n.parts
	if err := p.exchange(ctx, segments, weights, updates); err != nil {
		return err
	}
	for i, param := range p.paramOf {
		p.perSegment[0][i], p.perSegment[1][i] = p.totals[0][param], p.totals[1][param]
	}
	o.SetTotals(p.perSegment[0], p.perSegment[1])
	return nil
}
