package trainer

import (
	"cmp"
	"context"
	"slices"

	"github.com/gradfusion/gradfusion/parallel"
)

// streams reports whether the optimizer's state should be taken tensor by tensor,
// because a rank has no memory for all of it.
func (s *session) streams() bool { return s.cfg.Parallel.ShardOptimizer && !s.cutOverRanks() }

// stateHash is the hash of state and more; it is collective, like state, which
// says what params are.
func (s *session) stateHash(ctx context.Context, params, more []parallel.Named) (string, error) {
	if !s.streams() {
		state, err := s.state(ctx, params)
		return parallel.Hash(append(state, more...)), err
	}
	rest, err := s.stateBeside(ctx, params)
	if err != nil {
		return "", err
	}
	rest = append(rest, more...)
	slices.SortFunc(rest, func(a, b parallel.Named) int { return cmp.Compare(a.Name, b.Name) })
	h := parallel.NewHasher()
	after := slices.IndexFunc(rest, func(n parallel.Named) bool { return n.Name > prefixOptimizer })
	for _, n := range rest[:after] {
		h.Add(n)
	}
	err = s.fusion.EachState(ctx, func(n parallel.Named) error {
		n.Name = prefixOptimizer + n.Name
		h.Add(n)
		return nil
	})
	for _, n := range rest[after:] {
		h.Add(n)
	}
	return h.Sum(), err
}
