package faulty

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"rank=1 kind=delay after=10 for=2s":              "rank=1 kind=delay after=10 count=1 for=2s chance=1 seed=1",
		" kind=drop\trank=0 ":                            "rank=0 kind=drop after=0 count=0 for=0s chance=1 seed=1",
		"rank=2 kind=reorder":                            "rank=2 kind=reorder after=0 count=1 for=10ms chance=1 seed=1",
		"rank=2 kind=kill peer=3":                        "rank=2 kind=kill after=0 count=1 for=0s peer=3 chance=1 seed=1",
		"rank=2 kind=corrupt count=0 chance=0.25 seed=9": "rank=2 kind=corrupt after=0 count=0 for=0s chance=0.25 seed=9",
		"":                             `it needs a rank`,
		"rank=1":                       `it needs a kind: delay, reorder, drop, corrupt, freeze, kill`,
		"rank=1 kind=delai":            `it needs a kind`,
		"rank=-1 kind=delay":           `rank=-1: no number`,
		"rank=1 kind=delay for=2":      `for=2: time: missing unit`,
		"rank=1 kind=delay for=-2s":    `for=-2s: a time below zero`,
		"rank=1 kind=delay chance=0":   `chance=0: it has to be above 0`,
		"rank=1 kind=delay chance=NaN": `it has to be above 0`,
		"rank=1 kind=delay seed=99999999999999999999": `out of range`,
		"rank=1 kind=delay delay":                     `"delay" is no key=value`,
		"rank=1 rank=2 kind=delay":                    `rank is given twice`,
		"rank=1 kind=delay until=3":                   `unknown key "until"; there are rank, kind, peer, after, count, for, chance and seed`,
	} {
		f, err := Parse(text)
		if err != nil {
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, fmt.Sprintf("fault %q", text))
			continue
		}
		require.Equal(t, want, f.String())
		again, err := Parse(f.String())
		require.NoError(t, err)
		require.Equal(t, f, again)
	}
	_, err := ParseAll([]string{"rank=1 kind=kill", "kind=kill"})
	require.Error(t, err)
}

func FuzzParse(f *testing.F) {
	f.Add("rank=1 kind=delay after=10 for=2s")
	f.Add("rank=0 kind=drop chance=1e-3 seed=7 peer=2 count=0")
	f.Fuzz(func(t *testing.T, text string) {
		fault, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(fault.String())
		require.NoError(t, err)
		require.Equal(t, fault, again)
	})
}

// wrapped returns a Connect whose rank r has the faults.
func wrapped(t *testing.T, texts ...string) commtest.Connect {
	faults, err := ParseAll(texts)
	require.NoError(t, err)
	return func(_ testing.TB, n int) []collective.Transport {
		ranks := make([]collective.Transport, n)
		for r, transport := range inproc.New(n) {
			ranks[r] = Wrap(transport, Config{Faults: faults})
		}
		return ranks
	}
}

// TestStillATransport: messages that are late or overtake others keep to the
// contract.
func TestStillATransport(t *testing.T) {
	commtest.Transports(t, wrapped(t,
		"rank=0 kind=reorder for=1ms count=40 chance=0.1", "rank=1 kind=delay for=1ms count=40 chance=0.05",
		"rank=2 kind=reorder for=500us count=40 chance=0.2 seed=3", "rank=2 kind=delay for=300us count=40 chance=0.1 seed=4"))
}

// TestDelaysAndReorderingChangeNothing in sums, whatever is late.
func TestDelaysAndReorderingChangeNothing(t *testing.T) {
	for seed := range 40 {
		for _, length := range []int{5, 30_000} {
			synctest.Test(t, func(t *testing.T) {
				for r, err := range outcome(t, length,
					fmt.Sprintf("rank=0 kind=reorder count=0 chance=0.3 for=50ms seed=%d", seed),
					fmt.Sprintf("rank=1 kind=reorder count=0 chance=0.5 for=20ms seed=%d", seed+100),
					fmt.Sprintf("rank=2 kind=delay count=0 chance=0.2 for=30ms seed=%d", seed+200)) {
					require.NoError(t, err, "seed %d, rank %d", seed, r)
				}
			})
		}
	}
}

func TestWrapWithoutFaults(t *testing.T) {
	transport := inproc.New(2)[0]
	require.Equal(t, collective.Transport(transport), Wrap(transport, Config{Faults: []Fault{{Rank: 1}}}))
	require.NoError(t, transport.Close())
}

// outcome runs calls on three ranks until they fail or are done.
func outcome(t *testing.T, length int, texts ...string) []error {
	t.Helper()
	ranks := wrapped(t, texts...)(t, 3)
	errs := make([]error, len(ranks))
	var all errgroup.Group
	groups := make([]*collective.Group, len(ranks))
	for r, transport := range ranks {
		all.Go(func() error {
			g := collective.NewGroup(transport, collective.GroupConfig{Timeout: 20 * time.Second, Algorithm: "ring"})
			groups[r] = g
			for step := 1; step <= 5 && errs[r] == nil; step++ {
				b := make([]float32, length)
				for i := range b {
					b[i] = float32(step + r)
				}
				c := collective.Call{Kind: plan.AllReduce, In: device.FromF32(b), Label: fmt.Sprintf("bucket %d", step)}
				errs[r] = g.Start(context.Background(), c).Wait(context.Background())
				for i := range b {
					if want := float32(3*step + 3); errs[r] == nil && b[i] != want {
						errs[r] = fmt.Errorf("rank %d, step %d: %v instead of %v", r, step, b[i], want)
					}
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	for r, transport := range ranks {
		require.NoError(t, groups[r].Close())
		if err := transport.Close(); err != nil {
			require.ErrorIs(t, err, collective.ErrClosed)
		}
	}
	return errs
}

// TestFaultsAreFound: each leads to an error on every rank, in its time, that
// names the rank and the call; none to a wrong result.
func TestFaultsAreFound(t *testing.T) {
	for _, tt := range []struct {
		fault string
		limit time.Duration
		want  string // in all errors
	}{
		{"rank=1 kind=delay after=3 for=5s", 6 * time.Second, ""},
		{"rank=1 kind=reorder count=0 for=1s", 60 * time.Second, ""},
		{"rank=1 kind=drop after=6", 21 * time.Second, "20s"},
		{"rank=1 kind=drop after=5 count=1", 21 * time.Second, "a message was lost|rank 1 sent 64 bytes where"},
		{"rank=1 kind=freeze after=6", 21 * time.Second, "20s"},
		{"rank=1 kind=freeze after=6 for=10s", 11 * time.Second, ""},
		{"rank=1 kind=kill after=6", time.Second, "closed"},
	} {
		for _, length := range []int{9, 100_000} {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				errs := outcome(t, length, tt.fault)
				require.LessOrEqual(t, time.Since(begin), tt.limit, tt.fault)
				for r, err := range errs {
					if tt.want == "" {
						require.NoError(t, err, tt.fault)
						continue
					}
					var failure *collective.PeerError
					require.True(t, errors.As(err, &failure), "%s: rank %d: %v", tt.fault, r, err)
					require.Regexp(t, tt.want, err.Error(), "%s: rank %d", tt.fault, r)
					require.Regexp(t, `group world, call \d \(all-reduce sum of \d+ f32\) of bucket \d: `, err.Error())
				}
			})
		}
	}
}

// TestCorruption: a changed header is an error that says so; this suite's other
// bits are values, which only a checksum can tell.
func TestCorruption(t *testing.T) {
	found := 0
	for seed := range 60 {
		synctest.Test(t, func(t *testing.T) {
			errs := outcome(t, 3, fmt.Sprintf("rank=1 kind=corrupt after=2 count=1 seed=%d", seed))
			for _, err := range errs {
				if err != nil && !strings.Contains(err.Error(), "instead of") {
					found++ // 64 bytes of header, 4 of values
					return
				}
			}
		})
	}
	require.Greater(t, found, 20, "of 60 changed bits")
}
