package observe_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/observe"
)

func Example() {
	events := observe.NewRecorder(1 << 10)
	events.Record(observe.Span{Kind: observe.Forward, Lane: "compute", Name: "stem", Start: 1_000, End: 3_000, Step: 1})
	events.Record(observe.Span{Kind: observe.Call, Lane: "world", Name: "bucket 0", Start: 2_000, End: 7_000, Step: 1, Bytes: 4096})
	events.Drain(func(s observe.Span) { fmt.Println(s.Kind, s.Name, s.Duration()) })
	// Output:
	// forward stem 2µs
	// call bucket 0 5µs
}

func steps(r *observe.Recorder) (out []int, lost int) {
	lost = r.Drain(func(s observe.Span) { out = append(out, s.Step) })
	return out, lost
}

func TestTheNewestSpansAreKept(t *testing.T) {
	for _, size := range []int{0, 1, 3, 600, 5000} { // some of which it grows to
		r := observe.NewRecorder(size)
		kept := max(size, 1)
		next := 0
		for _, count := range []int{0, 1, kept, kept + 2, 2*kept + 1} {
			var want []int
			for i := range count {
				r.Record(observe.Span{Step: next + i})
				if i >= count-kept {
					want = append(want, next+i)
				}
			}
			next += count
			got, lost := steps(r)
			require.Equal(t, want, got, "%d spans in a ring of %d", count, kept)
			require.Equal(t, max(count-kept, 0), lost)
		}
	}
}

func TestNilRecordsNothing(t *testing.T) {
	var r *observe.Recorder
	r.Record(observe.Span{})
	require.Zero(t, r.Now())
	require.Zero(t, r.Drain(func(observe.Span) { t.Fatal("a span of nobody") }))
}

func TestClock(t *testing.T) {
	before := time.Now().UnixNano()
	now := observe.NewRecorder(1).Now()
	require.GreaterOrEqual(t, now, before)
	require.LessOrEqual(t, now, time.Now().UnixNano())
}

func TestKinds(t *testing.T) {
	names := map[string]bool{}
	for k := observe.Kind(0); k.Valid(); k++ {
		names[k.String()] = true
	}
	require.Len(t, names, int(observe.Bubble)+1, "every kind has a name of its own")
}

// What is recorded while another goroutine drains is there once.
func TestRecordWhileDraining(t *testing.T) {
	const writers, each = 4, 500
	r := observe.NewRecorder(writers * each)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				r.Record(observe.Span{Step: w*each + i})
			}
		})
	}
	seen := map[int]bool{}
	collect := func(s observe.Span) { seen[s.Step] = true }
	for range 50 {
		require.Zero(t, r.Drain(collect))
	}
	group.Wait()
	require.Zero(t, r.Drain(collect))
	require.Len(t, seen, writers*each)
}

func TestRecordAllocatesNothing(t *testing.T) {
	r := observe.NewRecorder(8)
	require.Zero(t, testing.AllocsPerRun(100, func() { r.Record(observe.Span{Name: "block"}) }))
}
