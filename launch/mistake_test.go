package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/monitor"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/collective/tcp"
	"github.com/gradfusion/gradfusion/device"
)

// Ranks of the mistakes wait so long for calls, and for reports.
const (
	mistakeTimeout = 3 * time.Second
	mistakeStall   = 300 * time.Millisecond
)

// mistake runs a program that is wrong on rank 1, watched by a Monitor.
func mistake(place Place, kind string) int {
	err := watched(place, func(ctx context.Context, g *collective.Group) error {
		sum := func(n int, label string) collective.Call {
			return collective.Call{Kind: plan.AllReduce, In: device.FromF32(make([]float32, n)), Label: label}
		}
		run := func(g *collective.Group, c collective.Call) error { return g.Start(ctx, c).Wait(ctx) }
		odd := place.Rank == 1
		switch kind {
		case "shape":
			n := 1024
			if odd {
				n = 1000
			}
			return run(g, sum(n, "bucket 3: conv1.weight"))
		case "order":
			first, second := sum(1024, "bucket 0"), sum(512, "bucket 1")
			if odd {
				first, second = second, first
			}
			return errors.Join(run(g, first), run(g, second))
		case "cycle":
			sub, err := g.Sub(ctx, []int{0, 1, 2})
			if err != nil {
				return err
			}
			defer sub.Close()
			other, _ := sub.(*collective.Group)
			first, second := g, other
			if odd {
				first, second = other, g
			}
			// When rank 1 has given up it makes its second call, and a rank that has had its
			// values for the first one by then has a sum: it learns at the next step's.
			return errors.Join(run(first, sum(8, "")), run(second, sum(8, "")), run(other, sum(8, "")))
		case "absent":
			if err := run(g, sum(8, "bucket 0")); err != nil {
				return err
			}
			if odd {
				forgetTheCall(ctx)
			}
			return run(g, sum(8, "bucket 1"))
		}
		return fmt.Errorf("unknown mistake %q", kind)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitPeer
	}
	return 0
}

// forgetTheCall is what a report should name.
func forgetTheCall(ctx context.Context) { <-ctx.Done() }

// watched joins the job and calls f.
func watched(place Place, f func(context.Context, *collective.Group) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*mistakeTimeout)
	defer cancel()
	meeting, err := Connect(ctx, place)
	if err != nil {
		return err
	}
	world, err := tcp.Join(ctx, tcp.Config{
		Rank: place.Rank, Size: place.Size, Namespace: place.Job, Token: place.Token,
		Store: meeting.Store, ListenAddr: meeting.LocalAddr(),
	})
	if err != nil {
		return err
	}
	m, err := monitor.Start(ctx, monitor.Config{
		Rank: place.Rank, Size: place.Size, Store: meeting.Store, Namespace: place.Job, Stall: mistakeStall,
		On: func(e monitor.Event) { fmt.Println(e.Text) },
	})
	if err != nil {
		return err
	}
	g := collective.NewGroup(world, collective.GroupConfig{Timeout: mistakeTimeout, Monitor: m})
	ended, stop := context.WithTimeout(ctx, 2*mistakeTimeout) // for the rank that forgets its call
	defer stop()
	err = f(ended, g)
	patience, enough := context.WithTimeout(ctx, 100*time.Millisecond)
	defer enough()
	_ = errors.Join(g.Close(), m.Close(), world.Close(), meeting.Close(patience)) // the others may be gone
	return err
}

// TestMistakes: what is wrong on one rank is told on every rank, within the
// time-out, and reported before where it makes ranks wait.
func TestMistakes(t *testing.T) {
	for _, tt := range []struct {
		kind   string
		every  string // in every rank's log
		report string // likewise
	}{
		{"shape", `rank \d, group world, call 1 \(all-reduce sum of 10\d\d f32\) of bucket 3: conv1\.weight: .*ranks run different calls: rank \d call 1 \(all-reduce sum of 10\d\d f32.*\), rank \d call 1 \(all-reduce sum of 10\d\d f32`, ``},
		{"order", `of 1024 f32.*of 512 f32|of 512 f32.*of 1024 f32`, ``},
		{"cycle", `rank \d, group world(\.1)?, call \d \(all-reduce sum of 8 f32\): peer \d: .*waited 3s`,
			`(?s)has not started it; it is in call 1 of group world\.1 \(all-reduce sum of 8 f32\).*\n    ranks [\d and,to]+ wait for each other in different calls`},
		{"absent", `call 2 \(all-reduce sum of 8 f32\) of bucket 1: peer 1: `,
			`(?s)ranks 0 and 2 wait in it\n    rank 1 \(pid \d+\) has not started it; its last call, 1, ended .* ago; its goroutines:\n.*launch\.mistake\.func1 > launch\.forgetTheCall at mistake_test\.go:\d+ \[chan receive\]`},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			s := newScene(t, 3, "mistake="+tt.kind)
			code, err := Run(t.Context(), s.Config)
			require.Equal(t, exitPeer, code)
			var failure *WorkerError
			require.ErrorAs(t, err, &failure)
			for rank := range 3 {
				log := s.log(t, rank)
				require.Regexp(t, regexp.MustCompile(tt.every), log, "rank %d", rank)
				require.Regexp(t, regexp.MustCompile(tt.report), log, "rank %d", rank)
			}
			noChildren(t)
		})
	}
}
