package launch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// freePort is one that nobody listens on, below those that the system gives to
// who asks for any: other tests may do that before this one's process listens.
func freePort(t *testing.T) int {
	for range 100 {
		port := 20_000 + rand.IntN(12_000)
		listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			require.NoError(t, listener.Close())
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// assemble has processes connect as these ranks of so many, all at once, and
// returns how that went. The first place must be rank 0's.
func assemble(t *testing.T, timeout time.Duration, ranks, sizes []int) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	port := freePort(t)
	errs := make([]error, len(ranks))
	var all, left sync.WaitGroup
	left.Add(len(ranks))
	for i := range ranks {
		all.Go(func() {
			p := Place{Rank: ranks[i], Size: sizes[i], LocalSize: 1, Host: "127.0.0.1", Port: port, Job: "job", Token: "secret"}
			meeting, err := Connect(ctx, p)
			errs[i] = err
			left.Done()
			left.Wait()
			if meeting != nil {
				patience, enough := context.WithTimeout(t.Context(), time.Second)
				defer enough()
				_ = meeting.Close(patience)
			}
		})
	}
	all.Wait()
	return errs
}

func TestRollCall(t *testing.T) {
	for i, err := range assemble(t, time.Minute, []int{0, 1, 2}, []int{3, 3, 3}) {
		require.NoError(t, err, "rank %d", i)
	}
}

// TestRankTwice: every process of the job is told of both, long before a time-out.
func TestRankTwice(t *testing.T) {
	for _, ranks := range [][]int{{0, 1, 1}, {0, 2, 2}, {0, 0, 1}} {
		named := 0
		for i, err := range assemble(t, time.Minute, ranks, []int{3, 3, 3}) {
			require.Error(t, err, "%v: rank %d", ranks, ranks[i])
			if errors.Is(err, ErrRanks) {
				named++
				twice := strconv.Itoa(ranks[1])
				if ranks[1] == 0 {
					twice = "0"
				}
				require.Regexp(t, `process \d+ on .* and process \d+ on .* both have rank `+twice+` \(RANK=`+twice+`\)`, err.Error())
			}
		}
		require.GreaterOrEqual(t, named, 2, "%v", ranks)
	}
}

// TestSizesDiffer: both sizes and who believes in them.
func TestSizesDiffer(t *testing.T) {
	named := 0
	for _, err := range assemble(t, time.Minute, []int{0, 1, 2}, []int{3, 4, 3}) {
		require.Error(t, err)
		if errors.Is(err, ErrRanks) {
			named++
			require.ErrorContains(t, err, "WORLD_SIZE=3")
			require.ErrorContains(t, err, "WORLD_SIZE=4")
			require.Regexp(t, `rank 1 \(process \d+ on`, err.Error())
		}
	}
	require.GreaterOrEqual(t, named, 2)
}

// TestRankAbsent: the time-out says who did not come.
func TestRankAbsent(t *testing.T) {
	for _, err := range assemble(t, 3*time.Second, []int{0, 2}, []int{4, 4}) {
		require.ErrorContains(t, err, "ranks 1, 3 did not come to the job's store at 127.0.0.1:")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

// TestRankComesAgain: one that has died, of which its will tells, may be replaced.
func TestRankComesAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := Place{Size: 2, LocalSize: 1, Host: "127.0.0.1", Port: freePort(t), Job: "job", Token: "secret"}
	var meeting *Rendezvous
	first := make(chan error, 1)
	go func(zero Place) {
		var err error
		meeting, err = Connect(ctx, zero)
		first <- err
	}(p)
	p.Rank = 1
	client, err := p.dial(ctx)
	require.NoError(t, err)
	dead := &roll{p, client, "process 1 on a host"}
	require.NoError(t, dead.claim(ctx))
	require.NoError(t, client.Set(ctx, dead.key("rank", 1, 1, "gone"), nil))
	again, err := Connect(ctx, p)
	require.NoError(t, err)
	require.NoError(t, <-first)
	require.NoError(t, client.Close())
	require.NoError(t, again.Close(ctx))
	require.NoError(t, meeting.Close(ctx))
}
