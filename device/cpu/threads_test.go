package cpu

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// tally counts how often each part is done.
type tally struct{ done []atomic.Int32 }

func (t *tally) do(_ *scratch, i int) { t.done[i].Add(1) }

func (t *tally) require(tb testing.TB, parts int) {
	tb.Helper()
	for i := range t.done {
		want := int32(0)
		if i < parts {
			want = 1
		}
		require.Equal(tb, want, t.done[i].Swap(0))
	}
}

// Each part is done once when run returns: by several callers at once, of more
// threads than there are processors, whether they look or sleep at once.
func TestPoolDoesEachPartOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 9} {
		for _, patient := range []bool{false, true} {
			p := &pool{threads: threads}
			if patient {
				p.patient = patience
			}
			p.start()
			var callers sync.WaitGroup
			for range 2 * offered {
				callers.Go(func() {
					w, task := newWorkspace(nil, nil, nil), &tally{done: make([]atomic.Int32, 40)}
					for round := range 300 {
						p.run(w, task, round%len(task.done))
						task.require(t, round%len(task.done))
					}
				})
			}
			callers.Wait()
			p.close()
			for i := range p.offers {
				require.Nil(t, p.offers[i].Load())
			}
		}
	}
}

// visited is a task of which each part tries to join its own share, as a helper that
// is late from an earlier offer does.
type visited struct {
	share  *share
	joined bool
}

func (t *visited) do(*scratch, int) { t.joined = t.joined || t.share.enter() }

// Nobody joins a task for which there was no place: its caller would not wait.
func TestPoolWithoutPlace(t *testing.T) {
	p := newPool(2, false, nil)
	defer p.close()
	for i := range p.offers {
		p.offers[i].Store(new(share))
	}
	w := newWorkspace(nil, nil, nil)
	task := &visited{share: &w.share}
	p.run(w, task, 8)
	require.False(t, task.joined)
	for i := range p.offers {
		p.offers[i].Store(nil)
	}
}

// A closed pool computes on its callers.
func TestPoolAfterClose(t *testing.T) {
	p := newPool(3, false, nil)
	w, task := newWorkspace(nil, nil, nil), &tally{done: make([]atomic.Int32, 8)}
	p.run(w, task, 8)
	task.require(t, 8)
	p.close()
	p.run(w, task, 8)
	task.require(t, 8)
}

func TestPoolAllocatesNothing(t *testing.T) {
	p := newPool(2, false, nil)
	defer p.close()
	w, task := newWorkspace(nil, nil, nil), &tally{done: make([]atomic.Int32, 8)}
	require.Zero(t, testing.AllocsPerRun(100, func() { p.run(w, task, 8) }))
}

// busy is a task whose parts take some microseconds.
type busy struct{ rounds int }

func (t busy) do(s *scratch, _ int) {
	s.steps = grow(s.steps, 1)
	for i := range t.rounds {
		s.steps[0] += int64(i)
	}
}

// BenchmarkSharing shows what a second thread gains for tasks of 64 parts: the
// time for one and two threads.
func BenchmarkSharing(b *testing.B) {
	for _, rounds := range []int{100, 1000, 10000} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("rounds=%d/threads=%d", rounds, threads), func(b *testing.B) {
				p := newPool(threads, false, nil)
				defer p.close()
				w := newWorkspace(nil, nil, nil)
				var task task = busy{rounds}
				for b.Loop() {
					p.run(w, task, 64)
				}
			})
		}
	}
}
