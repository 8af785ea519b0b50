package trainer

import (
	"context"
	"slices"

	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel"
)

// hashes returns the hashes of the parameters and of the state; more stands in the
// state for what is kept. It is collective, and if the model is cut in stages
// right on rank 0 only.
func (s *session) hashes(ctx context.Context, more []parallel.Named) (params, state string, err error) {
	sections, err := s.state(ctx)
	if err != nil {
		return "", "", err
	}
	own, all := parallel.NewHasher(), parallel.NewHasher()
	for _, c := range sections {
		if c.prefix == prefixFeedback {
			for _, t := range more {
				all.Add(t)
			}
			continue
		}
		err := s.visit(ctx, c, func(t parallel.Named) error {
			if c.prefix == prefixParam {
				own.Add(t)
			}
			t.Name = c.prefix + t.Name
			all.Add(t)
			return nil
		})
		if err != nil {
			return "", "", err
		}
	}
	return own.Sum(), all.Sum(), nil
}

// gradientsHash is the hash of gradients, where hashes is right; nobody has all of
// those of a model that is cut.
func (s *session) gradientsHash(ctx context.Context, gradients []parallel.Named) (string, error) {
	c := s.sectionOf("", gradients)
	if err := s.list(ctx, c); err != nil {
		return "", err
	}
	h := parallel.NewHasher()
	err := s.visit(ctx, c, func(t parallel.Named) error {
		h.Add(t)
		return nil
	})
	return h.Sum(), err
}

// hashGradients sees to the hash of the first step's gradients.
func (s *session) hashGradients(ctx context.Context) (err error) {
	g, err := s.fusion.Gradients(ctx)
	if err != nil {
		return err
	}
	f, hash := s.figures, ""
	f.gradFirst = &hash
	if s.cutOverRanks() {
		hash, err = s.gradientsHash(ctx, g)
		return err
	}
	f.first = g
	return nil
}

// hashFirst hashes the gradients of the first step beside what comes after it,
// which reads them only, up to the next backward pass.
func (f *figures) hashFirst() {
	if g := f.first; g != nil {
		f.hashing.Go(func() { *f.gradFirst = parallel.Hash(g) })
	}
}

// hashed waits for that.
func (f *figures) hashed() {
	f.hashing.Wait()
	f.first = nil
}

// beginHashed waits for the hash where a step may write gradients before a loss is
// computed: those of frozen parameters, and of a rank without samples.
func (s *session) beginHashed() {
	frozen := func(p *nn.Param) bool { return p.Frozen }
	if f := s.figures; f.first != nil && (s.comm.Size() > 1 || slices.ContainsFunc(nn.Params(s.blocks), frozen)) {
		f.hashed()
	}
}

// lossHashed is the job's loss, after which gradients are written.
func (s *session) lossHashed(t *nn.Tape, out []*nn.Var, b parallel.Batch) *nn.Var {
	if s.figures.first != nil {
		s.figures.hashed()
	}
	return s.loss(t, out, b)
}
