package parallel

import (
	"sync"

	"github.com/gradfusion/gradfusion/collective"
)

// queue is a reduction that works on one bucket after another, on a goroutine of
// its own, so that the backward pass goes on meanwhile.
type queue struct {
	jobs chan queued
	done sync.WaitGroup
}

type queued struct {
	bucket   *bucket
	complete func(error)
}

// mostQueued is how many buckets may wait before start does. The goroutine needs
// nobody's help to go on, so it is a matter of speed only.
const mostQueued = 1024

// newQueue returns a queue whose buckets are summed by reduce.
func newQueue(reduce func(*bucket) error) *queue {
	q := &queue{jobs: make(chan queued, mostQueued)}
	q.done.Go(func() {
		for j := range q.jobs {
			j.complete(reduce(j.bucket))
		}
	})
	return q
}

func (q *queue) start(b *bucket) *collective.Work {
	w, complete := collective.NewWork()
	q.jobs <- queued{b, complete}
	return w
}

func (q *queue) close() {
	close(q.jobs)
	q.done.Wait()
}
