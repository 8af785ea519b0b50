package parallel

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// Gradients lists the summed gradients of the last step as named tensors;
// between Wait and the next Backward. With a sharded optimizer it gathers them
// first, and is collective.
func (g *GradFusion) Gradients(ctx context.Context) ([]Named, error) {
	if err := g.landAll(ctx); err != nil {
		return nil, err
	}
	if g.sharded() {
		if err := g.gatherGradients(ctx); err != nil {
			return nil, fmt.Errorf("gathering gradients: %w", err)
		}
	}
	var out []Named
	for _, s := range g.stages {
		for _, b := range s.reducer.buckets {
			for _, e := range b.entries {
				if g.firstCopy(e.param) {
					out = append(out, Named{e.param.Name, e.param.Shape, e.slot(b.grad, 0)})
				}
			}
		}
	}
	return out, nil
}

// firstCopy is false for a tied parameter of which an earlier stage of this rank
// holds a copy.
func (g *GradFusion) firstCopy(p *nn.Param) bool {
	for _, t := range g.ties {
		if t.name == p.Name {
			return t.copies[0].param == p
		}
	}
	return true
}

// Completed returns the number of steps done, those before a Restore included.
func (g *GradFusion) Completed() int { return g.step }

// OptimizerState lists the optimizer's state tensors, called "parameter/name".
// They are the optimizer's own memory. Before the first step, as after Restore,
// it cuts the buckets first and is collective. That of a sharded optimizer is
// gathered in new memory, which is collective always.
func (g *GradFusion) OptimizerState() ([]Named, error) {
	var out []Named
	if g.sharded() {
		err := g.EachState(g.ctx, func(n Named) error {
			n.Buf = device.FromF32(slices.Clone(n.Buf.F32()))
			out = append(out, n)
			return nil
		})
		return out, err
	}
	if err := g.ready(g.ctx); err != nil {
		return nil, err
	}
	err := g.opt.State(func(name string, s optim.Segment, t device.Buf) error {
		if g.firstCopy(s.Param) {
			out = append(out, Named{StateName(s.Param.Name, name), []int{t.Len}, t})
		}
		return nil
	})
	return out, err
}

// ready makes the optimizer's state and all parameters what they are after the
// last step.
func (g *GradFusion) ready(ctx context.Context) error {
	if err := g.cutAll(); err != nil {
		return err
	}
	if err := g.startOptimizer(); err != nil {
		return err
	}
	return g.Complete(ctx)
}

// StateName is how the optimizer state of a parameter is called in checkpoints.
func StateName(param, name string) string { return param + "/" + name }

// Restore continues after the given number of completed steps. load fills the
// state tensor called name of a parameter; it is called when the optimizer has
// its memory, which the first Step gives it.
func (g *GradFusion) Restore(steps int, load func(param, name string, to device.Buf) error) error {
	if err := g.landAll(g.ctx); err != nil {
		return err
	}
	g.step, g.restore, g.local.merged = steps, load, steps
	g.changed()
	if g.norm == nil {
		return nil
	}
	return g.restorePending()
}

func (g *GradFusion) restorePending() error {
	if g.restore == nil {
		return nil
	}
	load := g.restore
	g.restore = nil
	var err error
	if g.sharded() {
		err = g.restoreParts(g.ctx, load)
	} else {
		err = g.opt.State(func(name string, s optim.Segment, t device.Buf) error {
			return load(s.Param.Name, name, t)
		})
	}
	if err != nil {
		return fmt.Errorf("restoring the optimizer: %w", err)
	}
	return nil
}
