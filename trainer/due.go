package trainer

import (
	"context"
	"time"

	"github.com/gradfusion/gradfusion/trainer/config"
)

// Votes that ranks cast for what must be decided together.
const (
	voteStop = 1 << iota
	voteEvaluate
	voteSave
)

// vote casts what this rank wants to be decided after the step.
func (s *session) vote() {
	select {
	case <-s.job.Stop:
		s.fusion.Vote(voteStop)
	default:
	}
	if s.comm.Rank() != 0 {
		return
	}
	if every := s.cfg.Train.EvalEvery.Time; every > 0 && time.Since(s.clock.evaluated) >= every {
		s.fusion.Vote(voteEvaluate)
	}
	if every := s.cfg.Checkpoint.Every.Time; every > 0 && time.Since(s.clock.saved) >= every {
		s.fusion.Vote(voteSave)
	}
}

// after does what is due when that many steps are done.
func (s *session) after(ctx context.Context, done int, votes uint32) error {
	last := done == s.total
	if !s.job.NoEvaluation && (last || votes&voteEvaluate != 0 || s.due(s.cfg.Train.EvalEvery, done)) {
		if err := s.evaluate(ctx); err != nil {
			return err
		}
		s.clock.evaluated = time.Now()
	}
	if last || votes&voteSave != 0 || s.due(s.cfg.Checkpoint.Every, done) {
		s.clock.saved = time.Now()
		return s.saver.save(ctx, s)
	}
	return nil
}

// planned reports whether it is certain before a step that something is due when
// that many are done.
func (s *session) planned(done int) bool {
	return done == s.total || s.due(s.cfg.Train.EvalEvery, done) || s.due(s.cfg.Checkpoint.Every, done)
}

func (s *session) due(every config.Every, done int) bool {
	switch {
	case every.Steps > 0:
		return done%every.Steps == 0
	case every.Epochs > 0:
		return done%(every.Epochs*s.sampler.StepsPerEpoch()) == 0
	}
	return false
}
