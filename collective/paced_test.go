package collective_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// slow is a link for which all-reduces are paced.
var slow = plan.Links{Across: plan.Link{BytesPerSecond: 125e6}}

// pacedGroups are n ranks on hosts of their own.
func pacedGroups(t *testing.T, n int, c collective.GroupConfig) []*collective.Group {
	hosts := make([][]int, n)
	for r := range hosts {
		hosts[r] = []int{r}
	}
	groups := make([]*collective.Group, n)
	for r, transport := range inproc.NewOn(hosts) {
		groups[r] = collective.NewGroup(transport, c)
		t.Cleanup(func() {
			require.NoError(t, groups[r].Close())
			require.NoError(t, transport.Close())
		})
	}
	return groups
}

func TestPacedAllReduce(t *testing.T) {
	for _, n := range []int{2, 3, 4, 8} {
		groups := pacedGroups(t, n, collective.GroupConfig{Links: slow})
		for _, length := range []int{1 << 16, 1<<16 + 1, 777_777} {
			for _, op := range []collective.Op{collective.Sum, collective.Mean, collective.Max} {
				var all errgroup.Group
				for r, g := range groups {
					all.Go(func() error {
						values := make([]float32, length)
						for i := range values {
							values[i] = float32((i%64 + 1) * n * (r + 1)) // small integers: sums and means are exact
						}
						call := collective.Call{Kind: plan.AllReduce, Op: op, In: device.FromF32(values)}
						require.Equal(t, "paced", g.AlgorithmOf(call))
						if err := g.Start(context.Background(), call).Wait(context.Background()); err != nil {
							return err
						}
						for i, v := range values {
							want := (i%64 + 1) * n * n * (n + 1) / 2
							switch op {
							case collective.Mean:
								want /= n
							case collective.Max:
								want = (i%64 + 1) * n * n
							}
							if v != float32(want) {
								require.Equal(t, float32(want), v, "rank %d of %d, element %d of %d, %v", r, n, i, length, op)
							}
						}
						return nil
					})
				}
				require.NoError(t, all.Wait())
			}
		}
	}
}

func TestPacedIsForSlowLinksOnly(t *testing.T) {
	large := collective.Call{Kind: plan.AllReduce, In: device.FromF32(make([]float32, 1<<18))}
	small := collective.Call{Kind: plan.AllReduce, In: device.FromF32(make([]float32, 1<<10))}
	named := large
	named.Algorithm = "ring"
	apart := large
	apart.Out = device.FromF32(make([]float32, 1<<18))
	fast := plan.Links{Across: plan.Link{BytesPerSecond: 5e9}}
	for _, c := range []struct {
		name   string
		config collective.GroupConfig
		call   collective.Call
		paced  bool
	}{
		{"slow", collective.GroupConfig{Links: slow}, large, true},
		{"auto", collective.GroupConfig{Links: slow, Algorithm: "auto"}, large, true},
		{"fast", collective.GroupConfig{Links: fast}, large, false},
		{"unknown", collective.GroupConfig{}, large, false},
		{"configured", collective.GroupConfig{Links: slow, Algorithm: "ring"}, large, false},
		{"named", collective.GroupConfig{Links: slow}, named, false},
		{"small", collective.GroupConfig{Links: slow}, small, false},
		{"into another buffer", collective.GroupConfig{Links: slow}, apart, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := pacedGroups(t, 2, c.config)[0]
			require.Equal(t, c.paced, g.AlgorithmOf(c.call) == "paced")
		})
	}
}
