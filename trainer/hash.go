package trainer

import (
	"context"

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
