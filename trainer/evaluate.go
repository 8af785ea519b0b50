package trainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
)

// evaluation is the result over the whole test set, equal on all ranks.
type evaluation struct {
	done     bool
	loss     float64
	accuracy float64
}

// scoreRow is what one micro-batch of the test set gives: loss sum, correct,
// counted.
const scoreRow = 3

// evaluate runs the test set, each sample on exactly one rank, in micro-batches
// that do not depend on the number of ranks, and folds their scores in order:
// the result is the same for any number of ranks.
func (s *session) evaluate(ctx context.Context) error {
	start := s.job.Events.Now()
	own, err := s.score(ctx)
	if err != nil {
		return fmt.Errorf("evaluation after step %d: %w", s.fusion.Completed(), err)
	}
	all, err := s.gatherScores(ctx, own)
	if err != nil {
		return fmt.Errorf("evaluation after step %d: %w", s.fusion.Completed(), err)
	}
	sum, correct, counted := 0.0, 0.0, 0.0
	for at := 0; at < len(all); at += scoreRow {
		sum += all[at]
		correct += all[at+1]
		counted += all[at+2]
	}
	s.last = evaluation{done: true}
	if counted > 0 {
		s.last.loss, s.last.accuracy = sum/counted, correct/counted
	}
	s.job.Events.Record(observe.Span{Kind: observe.Evaluate, Lane: "compute", Name: "evaluate", Start: start, End: s.job.Events.Now(), Step: s.fusion.Completed()})
	s.emit(Event{Kind: Evaluated, Loss: s.last.loss, Accuracy: s.last.accuracy})
	if s.data.Text != nil {
		if err := s.figures.scalars(s.fusion.Completed(), scalar{"eval/perplexity", math.Exp(s.last.loss)}); err != nil {
			return err
		}
	}
	return s.figures.scalars(s.fusion.Completed(), scalar{"eval/loss", s.last.loss}, scalar{"eval/accuracy", s.last.accuracy})
}

// score runs this rank's part of the test set.
func (s *session) score(ctx context.Context) (rows []float64, err error) {
	defer nn.Catch(&err)
	parts := data.EvalParts(s.testing.Len(), s.micro, s.mesh.Data, s.mesh.At.Data)
	loader, err := data.NewLoader(s.testing, parts, data.LoaderConfig{Micro: s.micro, Workers: s.cfg.Data.Workers})
	if err != nil {
		return nil, err
	}
	defer loader.Close()
	if s.tape == nil {
		s.tape = nn.NewTape(s.device)
	}
	for {
		b, err := loader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return nil, err
		}
		batch := s.deviceBatch(b, nil)
		s.tape.Begin(nn.Pass{Precision: s.precision()})
		out := nn.Forward(s.tape, s.model.Blocks, s.tape.Input(batch.Input, batch.Shape, false))
		score := s.loss(s.tape, out, batch).Score()
		rows = append(rows, score.Sum(), float64(score.Correct()), float64(score.Count))
		loader.Release(b)
	}
}

func (s *session) gatherScores(ctx context.Context, own []float64) ([]float64, error) {
	ranks := s.mesh.Data
	if ranks == 1 {
		return own, nil
	}
	micros := data.Micros(s.testing.Len(), s.micro)
	bounds := []int{0}
	for p := range ranks {
		_, hi := data.Run(micros, ranks, p)
		bounds = append(bounds, hi*scoreRow)
	}
	all := make([]float64, bounds[ranks])
	call := collective.Call{Kind: plan.AllGather, In: device.FromF64(own), Out: device.FromF64(all), InBounds: bounds, Label: "evaluation"}
	return all, s.mesh.Replicas.Start(ctx, call).Wait(ctx)
}
