package collective_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/plan"
)

// onHosts is a transport whose ranks seem to be on several hosts.
type onHosts struct {
	collective.Transport
	hosts [][]int
}

func (t onHosts) Hosts() [][]int { return t.hosts }

// TestMeasureLinks: all ranks get the same figures, whoever measured.
func TestMeasureLinks(t *testing.T) {
	for _, tt := range []struct {
		hosts        [][]int
		across, host bool // are measured
	}{
		{[][]int{{0, 1, 2}}, false, false},
		{[][]int{{0}, {1}}, true, false},
		{[][]int{{0, 3}, {1}, {2}}, true, true},
		{[][]int{{0}, {1, 2}, {3, 4}}, true, true},
	} {
		n := 0
		for _, host := range tt.hosts {
			n += len(host)
		}
		measured := make([]plan.Links, n)
		var all errgroup.Group
		ranks := inproc.New(n)
		for r, tr := range ranks {
			all.Go(func() (err error) {
				measured[r], err = collective.MeasureLinks(t.Context(), onHosts{tr, tt.hosts})
				return err
			})
		}
		require.NoError(t, all.Wait())
		for r, links := range measured {
			require.Equal(t, measured[0], links, "rank %d of hosts %v", r, tt.hosts)
			require.Equal(t, tt.across, links.Across.BytesPerSecond > 0, "hosts %v: %v", tt.hosts, links)
			require.Equal(t, tt.host, links.Host.BytesPerSecond > 0, "hosts %v: %v", tt.hosts, links)
			require.NoError(t, ranks[r].Close())
		}
	}
}

// distant sends messages over a way that is long, at a rate.
type distant struct {
	onHosts
	delay time.Duration
	rate  float64
}

func (t distant) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	<-time.After(t.delay + time.Duration(float64(len(b))/t.rate*1e9)) // of the bubble's clock
	return t.onHosts.Send(ctx, to, tag, b)
}

// TestMeasureDistantLinks: how long a way is says nothing about its rate.
func TestMeasureDistantLinks(t *testing.T) {
	for _, delay := range []time.Duration{0, 100 * time.Microsecond, 40 * time.Millisecond, 80 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var all errgroup.Group
			for _, tr := range inproc.New(2) {
				all.Go(func() error {
					links, err := collective.MeasureLinks(t.Context(), distant{onHosts{tr, [][]int{{0}, {1}}}, delay, 125e6})
					if err != nil {
						return err
					}
					if rate := links.Across.BytesPerSecond; math.Abs(rate-125e6) > 6e6 { // two digits
						return fmt.Errorf("%.3g bytes a second over a way of %v", rate, delay)
					}
					return tr.Close()
				})
			}
			require.NoError(t, all.Wait())
		})
	}
}

// TestMeasureLinksWithoutAPeer ends with the transport.
func TestMeasureLinksWithoutAPeer(t *testing.T) {
	ranks := inproc.New(3)
	require.NoError(t, ranks[1].Close())
	_, err := collective.MeasureLinks(t.Context(), onHosts{ranks[0], [][]int{{0, 2}, {1}}})
	require.ErrorContains(t, err, "rank 0 measures the link of ranks 0 and 1")
	var link *collective.LinkError
	require.ErrorAs(t, err, &link)
	require.NoError(t, ranks[0].Close())
	require.NoError(t, ranks[2].Close())
}
