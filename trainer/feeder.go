package trainer

import (
	"context"
	"fmt"
	"iter"

	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// feeder hands the executor the micro-batches that a loader prepares, several of
// which a pipeline holds at one time.
type feeder struct {
	session *session
	loader  *data.Loader
	free    []*lent
}

// lent is a batch that the executor has.
type lent struct {
	batch *data.Batch
	done  func()
}

// newFeeder starts to prepare parts; hold is how many are held at a time.
func (s *session) newFeeder(filler data.Filler, parts iter.Seq[data.Part], hold int) (*feeder, error) {
	loader, err := data.NewLoader(filler, parts, data.LoaderConfig{Micro: s.micro, Workers: s.cfg.Data.Workers, Hold: hold})
	if err != nil {
		return nil, err
	}
	return &feeder{session: s, loader: loader}, nil
}

// feed is the executor's parallel.Feed.
func (f *feeder) feed(ctx context.Context, m parallel.Micro) (parallel.Batch, error) {
	b, err := f.loader.Next(ctx)
	if err != nil {
		return parallel.Batch{}, err
	}
	if b.Micro != m.Index {
		return parallel.Batch{}, fmt.Errorf("micro-batch %d was loaded where %d is due", b.Micro, m.Index)
	}
	l := f.take()
	l.batch = b
	return f.session.deviceBatch(b, l.done), nil
}

func (f *feeder) take() *lent {
	if n := len(f.free); n > 0 {
		l := f.free[n-1]
		f.free = f.free[:n-1]
		return l
	}
	l := &lent{}
	l.done = func() {
		f.loader.Release(l.batch)
		f.free = append(f.free, l)
	}
	return l
}

// mostFed returns how many micro-batches a rank's list holds samples of at one
// time: from the first action that reads them, which asks for those before them
// too, to the last.
func mostFed(list []schedule.Action, stages int) int {
	readers := func(a schedule.Action) bool { return a.Stage == 0 || a.Stage == stages-1 }
	training, need := false, map[int]int{} // by micro-batch: the readers that are not done
	for _, a := range list {
		training = training || a.Kind == schedule.Backward || a.Kind == schedule.Input
		if a.Kind == schedule.Forward && readers(a) {
			need[a.Micro]++
		}
	}
	fed, held, most := 0, 0, 0
	for _, a := range list {
		if a.Kind > schedule.Weight || !readers(a) {
			continue
		}
		if a.Kind == schedule.Forward {
			held += max(a.Micro+1-fed, 0)
			fed = max(fed, a.Micro+1)
			most = max(most, held)
		}
		if a.Kind == schedule.Backward || a.Kind == schedule.Weight || a.Kind == schedule.Forward && !training {
			if need[a.Micro]--; need[a.Micro] == 0 {
				held--
			}
		}
	}
	return most
}
