package trainer

import (
	"context"
	"errors"
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/parallel"
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

// diverged explains a loss that is no finite number.
func diverged(err error) error {
	if e := (*parallel.LossError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%w: %w; a smaller optim.lr, or optim.clip_norm, may help", ErrDiverged, err)
	}
	return err
}
