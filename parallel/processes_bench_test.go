package parallel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/shm"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// BenchmarkProcesses runs the test program again as its ranks; the variable says
// what for: schedule, ranks, stages of a rank, micro-batches, rank, store's address.
const processVariable = "PARALLEL_TEST_PROCESS"

// nap is what a stage takes there for each of F, I and W. A system wakes a process
// up to about 0.1 ms late, which is to be little beside it.
const nap = 50 * time.Millisecond

// napSteps are the steps of a job, of which the first counts for nothing.
const napSteps = 3

// sleepOn waits as a computation would: on the thread, without Go's timers, which
// are a millisecond late at times.
func sleepOn() {
	for end := time.Now().Add(nap); ; {
		left := time.Until(end)
		if left <= 0 {
			return
		}
		if _, err := unix.Poll(nil, int(left.Round(time.Millisecond)/time.Millisecond)); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// runProcess is main of a rank, which writes its spans as JSON.
func runProcess(description string) error {
	p, rank, address := sleeper{pause: sleepOn}, 0, ""
	if _, err := fmt.Sscan(description, &p.name, &p.ranks, &p.virtual, &p.micros, &rank, &address); err != nil {
		return err
	}
	ctx := context.Background()
	client, err := store.Dial(ctx, address, "secret")
	if err != nil {
		return err
	}
	t, err := shm.Join(ctx, shm.Config{Rank: rank, Size: p.ranks, Store: client, Namespace: "naps", Token: "secret"})
	if err != nil {
		return err
	}
	g := collective.NewGroup(t, collective.GroupConfig{Name: "world", Timeout: time.Minute})
	spans, err := p.run(ctx, g, napSteps)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(spans)
	}
	return errors.Join(err, g.Close(), t.Close(), client.Close())
}

// inProcesses runs the job in a process per rank and returns their spans.
func (p sleeper) inProcesses(tb testing.TB) [][]map[string]observe.Span {
	server, err := store.Listen(tb.Context(), "127.0.0.1:0", "secret")
	require.NoError(tb, err)
	defer server.Close()
	self, err := os.Executable()
	require.NoError(tb, err)
	var running sync.WaitGroup
	spans, errs := make([][]map[string]observe.Span, p.ranks), make([]error, p.ranks)
	for rank := range spans {
		running.Go(func() {
			c := exec.CommandContext(tb.Context(), self)
			c.Env = append(os.Environ(), fmt.Sprint(processVariable, "=", p.name, " ", p.ranks, " ", p.virtual, " ", p.micros, " ", rank, " ", server.Addr()))
			var said bytes.Buffer
			c.Stderr = &said
			text, err := c.Output()
			if err != nil {
				errs[rank] = fmt.Errorf("rank %d: %w: %s", rank, err, strings.TrimSpace(said.String()))
				return
			}
			errs[rank] = json.Unmarshal(text, &spans[rank])
		})
	}
	running.Wait()
	require.NoError(tb, errors.Join(errs...))
	return spans
}

// BenchmarkProcesses runs pipelines of 4 ranks in processes of their own, whose
// stages sleep what they cost, with 8 micro-batches, and compares the share of
// time in which ranks are in no action with the closed form: the median of the
// steps. How late the system ends a nap is measured beside it.
func BenchmarkProcesses(b *testing.B) {
	const ranks, micros = 4, 8
	closed := map[string]float64{ // idle time over all time, in units of a nap
		"gpipe":       float64(ranks-1) / (micros + ranks - 1),
		"1f1b":        float64(ranks-1) / (micros + ranks - 1),
		"interleaved": float64(ranks-1) / (2*micros + ranks - 1),
		"zb-h1":       float64(ranks-1) / (3*micros + ranks - 1),
	}
	for _, name := range schedule.Names() {
		b.Run(name, func(b *testing.B) {
			p := sleeper{name: name, ranks: ranks, virtual: 2, micros: micros, pause: sleepOn}
			s, err := schedule.New(p.name, p.ranks, p.virtual, p.micros)
			require.NoError(b, err)
			want, known := closed[name]
			if !known {
				timing, err := s.Simulate(schedule.Costs{})
				require.NoError(b, err)
				want = timing.IdleShare()
			}
			naps := float64(3 * micros * len(s.Owners())) // of all ranks in a step
			var shares, late []float64
			for b.Loop() {
				spans := p.inProcesses(b)
				for step := 1; step < napSteps; step++ {
					of := make([]map[string]observe.Span, ranks)
					for rank := range of {
						of[rank] = spans[rank][step]
					}
					timing, busy := timingOf(b, s, of, nap), 0.0
					for _, r := range timing.Ranks {
						busy += r.Busy
					}
					shares, late = append(shares, timing.IdleShare()), append(late, busy/naps-1)
				}
			}
			b.ReportMetric(100*median(shares), "%idle")
			b.ReportMetric(100*want, "%closed-form")
			b.ReportMetric(median(shares)/want, "ratio")
			b.ReportMetric(median(late)*float64(nap.Microseconds()), "us-late")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
