package trainer

import (
	"context"
	"fmt"
	"math"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/parallel/schedule"
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

// score runs this column's part of the test set; the rows are with the ranks that
// have the last stage.
func (s *session) score(ctx context.Context) (rows []float64, err error) {
	n, column, columns := s.testing.Len(), s.mesh.At.Data, s.mesh.Data
	lo, hi := data.Run(data.Micros(n, s.micro), columns, column)
	if lo == hi {
		return nil, nil
	}
	var feed parallel.Feed
	if s.reads() {
		list := schedule.Forwards(s.owners, hi-lo)[s.mesh.At.Pipeline]
		f, err := s.newFeeder(s.testing, data.EvalParts(n, s.micro, columns, column), mostFed(list, len(s.owners)))
		if err != nil {
			return nil, err
		}
		defer f.loader.Close()
		feed = f.feed
	}
	err = s.executor.Evaluate(ctx, parallel.MicroRange(n, s.micro, lo, hi), feed, func(_ parallel.Micro, score nn.Score) {
		rows = append(rows, score.Sum(), float64(score.Correct()), float64(score.Count))
	})
	return rows, err
}

// gatherScores gives all ranks the rows of all micro-batches, in order.
func (s *session) gatherScores(ctx context.Context, own []float64) ([]float64, error) {
	ranks := s.comm.Size()
	if ranks == 1 {
		return own, nil
	}
	micros := data.Micros(s.testing.Len(), s.micro)
	bounds, last := []int{0}, s.owners[len(s.owners)-1]
	at := make([]int, s.mesh.Data) // of the rows of each column, and their end
	for rank := range ranks {
		place, rows := s.mesh.PlaceOf(rank), 0
		if place.Pipeline == last && place.Tensor == 0 {
			lo, hi := data.Run(micros, s.mesh.Data, place.Data)
			at[place.Data], rows = bounds[rank], hi-lo
		}
		bounds = append(bounds, bounds[rank]+rows*scoreRow)
	}
	if s.mesh.At.Tensor > 0 {
		own = nil // the first partner's count
	}
	all := make([]float64, bounds[ranks])
	call := collective.Call{Kind: plan.AllGather, In: device.FromF64(own), Out: device.FromF64(all), InBounds: bounds, Label: "evaluation"}
	if err := s.comm.Start(ctx, call).Wait(ctx); err != nil {
		return nil, err
	}
	sorted := make([]float64, 0, len(all))
	for column := range s.mesh.Data {
		lo, hi := data.Run(micros, s.mesh.Data, column)
		sorted = append(sorted, all[at[column]:at[column]+(hi-lo)*scoreRow]...)
	}
	return sorted, nil
}
