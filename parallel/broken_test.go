package parallel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/faulty"
	"github.com/gradfusion/gradfusion/collective/inproc"
)

// A stage that dies or freezes in the middle of a step is named by all others
// within the time-out: step, stage, action, micro-batch, peer and the picture.
func TestBrokenStageIsNamedEverywhere(t *testing.T) {
	const timeout = 20 * time.Second
	for _, kind := range []string{"kill", "freeze"} {
		for _, after := range []int{150, 157, 163, 170} {
			t.Run(fmt.Sprintf("%s after %d messages", kind, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fault, err := faulty.Parse(fmt.Sprintf("rank=1 kind=%s after=%d", kind, after))
					require.NoError(t, err)
					p := smallModels()["mlp"](16)
					p.name, p.ranks, p.micro, p.steps = "1f1b", 3, 2, 50
					start := time.Now()
					errs := p.broken(t.Context(), fault, timeout)
					require.LessOrEqual(t, time.Since(start), 2*timeout)
					for _, rank := range []int{0, 2} {
						var at *ActionError
						require.ErrorAs(t, errs[rank], &at, "rank %d", rank)
						require.Equal(t, rank, at.Rank)
						require.Positive(t, at.Step)
						require.Contains(t, at.Error(), fmt.Sprintf("rank %d ", rank))
						require.Equal(t, 1, strings.Count(at.Error(), fmt.Sprintf("step %d", at.Step)), "%v", at)
						require.Contains(t, at.Grid, "^")
						var peer *collective.PeerError
						require.ErrorAs(t, errs[rank], &peer, "rank %d: %v", rank, errs[rank])
						require.Contains(t, at.Error(), "peer 1", "rank %d", rank)
					}
				})
			})
		}
	}
}

// broken runs a training in which one rank has a fault and returns what each
// rank's part of it returned.
func (p pipelined) broken(ctx context.Context, fault faulty.Fault, timeout time.Duration) []error {
	n := p.ranks * p.columns
	errs := make([]error, n)
	var running sync.WaitGroup
	for r, tr := range inproc.New(n) {
		running.Go(func() {
			tr := faulty.Wrap(tr, faulty.Config{Faults: []faulty.Fault{fault}})
			c := collective.NewGroup(tr, collective.GroupConfig{Name: "world", Timeout: timeout})
			errs[r] = p.rank(ctx, c, &state{tensors: map[string]Named{}})
			_ = errors.Join(c.Close(), tr.Close())
		})
	}
	running.Wait()
	return errs
}
