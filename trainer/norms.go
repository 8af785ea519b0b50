package trainer

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
)

// joinNorms makes the group of ranks over which BatchNorms take their statistics;
// nil where each micro-batch has its own. It is collective over the replicas.
func (s *session) joinNorms(ctx context.Context) (err error) {
	if !s.cfg.Parallel.SyncBatchNorm {
		return nil
	}
	if s.norms, err = collective.Twin(ctx, s.mesh.Replicas); err != nil {
		return fmt.Errorf("a group for BatchNorm: %w", err)
	}
	return nil
}

func (s *session) closeNorms() error {
	if s.norms == nil {
		return nil
	}
	return s.norms.Close()
}
