package monitor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/faulty"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/device"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job is a world of ranks in this process, each with its Monitor.
type job struct {
	t        *testing.T
	ranks    []*rank
	store    Store
	released chan struct{} // closed when ranks that hang may go on
}

type rank struct {
	transport collective.Transport
	gate      *gate
	monitor   *Monitor
	group     *collective.Group

	mu     sync.Mutex
	events []Event
}

func (r *rank) on(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// of returns the texts of the events of a kind.
func (r *rank) of(k Kind) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var texts []string
	for _, e := range r.events {
		if e.Kind == k {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// newJob has a time-out of half a second more, so that no call ends in the moment
// of a beat: beats would tell of the end before the ranks have.
func newJob(t *testing.T, n int, timeout time.Duration, faults ...faulty.Fault) *job {
	timeout += time.Second / 2
	j := &job{t: t, store: store.NewLocal(), released: make(chan struct{})}
	for i, inside := range inproc.New(n) {
		transport := collective.Transport(inside)
		if faults != nil {
			transport = faulty.Wrap(transport, faulty.Config{Faults: faults})
		}
		r := &rank{transport: transport, gate: &gate{Store: j.store}}
		var err error
		r.monitor, err = Start(t.Context(), Config{Rank: i, Size: n, Store: r.gate, Namespace: "job", On: r.on})
		require.NoError(t, err)
		r.group = collective.NewGroup(transport, collective.GroupConfig{Timeout: timeout, Monitor: r.monitor})
		j.ranks = append(j.ranks, r)
	}
	return j
}

// each runs f on every rank at once and returns the errors.
func (j *job) each(f func(i int, r *rank) error) []error {
	errs := make([]error, len(j.ranks))
	var all sync.WaitGroup
	for i, r := range j.ranks {
		all.Go(func() { errs[i] = f(i, r) })
	}
	all.Wait()
	return errs
}

func (j *job) close() {
	for _, r := range j.ranks {
		require.NoError(j.t, errors.Join(r.group.Close(), r.monitor.Close(), r.monitor.Close(), r.transport.Close()))
	}
}

// hang is what a rank does that never starts its call.
func hang(released chan struct{}) { <-released }

func sum(g *collective.Group, label string) error {
	c := collective.Call{Kind: plan.AllReduce, In: device.FromF32(make([]float32, 10)), Label: label}
	return g.Start(context.Background(), c).Wait(context.Background())
}

// gate is a store that a frozen rank does not reach.
type gate struct {
	Store
	mu     sync.Mutex
	thawed chan struct{} // nil: not frozen
}

func (g *gate) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.thawed = make(chan struct{})
}

func (g *gate) thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.thawed)
	g.thawed = nil
}

func (g *gate) Set(ctx context.Context, key string, value []byte) error {
	g.mu.Lock()
	thawed := g.thawed
	g.mu.Unlock()
	if thawed != nil {
		select {
		case <-thawed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return g.Store.Set(ctx, key, value)
}
