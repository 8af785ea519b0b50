package collective_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// ahead counts the pieces that a sender is ahead of its receiver.
type ahead struct {
	collective.Transport
	sent, received, most *atomic.Int64
	wait                 func() // called when an answer is waited for
}

func (a *ahead) SendFilled(ctx context.Context, to int, tag collective.Tag, stage []byte, fill func([]byte) []byte) error {
	if len(stage) > 4096 {
		if now := a.sent.Add(1) - a.received.Load(); now > a.most.Load() {
			a.most.Store(now)
		}
	}
	return a.Transport.SendFilled(ctx, to, tag, stage, fill)
}

func (a *ahead) Recv(ctx context.Context, from int, tag collective.Tag, b []byte) error {
	if len(b) == 0 {
		a.wait()
	}
	err := a.Transport.Recv(ctx, from, tag, b)
	if len(b) > 4096 && err == nil {
		a.received.Add(1)
	}
	return err
}

func (a *ahead) RecvInPlace(ctx context.Context, from int, tag collective.Tag, use func([]byte) error) (bool, error) {
	return a.Transport.RecvInPlace(ctx, from, tag, func(b []byte) error {
		if len(b) > 4096 {
			a.received.Add(1)
		}
		return use(b)
	})
}

// TestPackedAhead: many calls of few pieces each do not run away from a receiver that
// is busy with something else.
func TestPackedAhead(t *testing.T) {
	const calls, length = 25, 3 << 18 // 49 pieces
	var sent, received, most atomic.Int64
	blocked := make(chan struct{})
	wait := sync.OnceFunc(func() { close(blocked) })
	groups := make([]*collective.Group, 2)
	for r, transport := range inproc.NewOn(alone(2)) {
		groups[r] = collective.NewGroup(&ahead{transport, &sent, &received, &most, wait},
			collective.GroupConfig{Packed: collective.PackAcrossHosts})
		t.Cleanup(func() {
			require.NoError(t, groups[r].Close())
			require.NoError(t, transport.Close())
		})
	}
	values := []device.Buf{gradients(1, device.F32, length, false), gradients(2, device.F32, length, false)}
	var all errgroup.Group
	for r, g := range groups {
		all.Go(func() error {
			if r == 1 {
				<-blocked
			} else {
				defer wait()
			}
			for range calls {
				if err := collective.Run(context.Background(), g, collective.Call{Kind: plan.Broadcast, In: values[r]}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	require.Equal(t, values[0].Bytes(), values[1].Bytes())
	require.Equal(t, int64(64), most.Load())
}

// answering counts answers that nobody has received.
type answering struct {
	collective.Transport
	left *atomic.Int64
}

func (a *answering) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	if len(b) == 0 {
		a.left.Add(1)
	}
	return a.Transport.Send(ctx, to, tag, b)
}

func (a *answering) Recv(ctx context.Context, from int, tag collective.Tag, b []byte) error {
	err := a.Transport.Recv(ctx, from, tag, b)
	if len(b) == 0 && err == nil {
		a.left.Add(-1)
	}
	return err
}

// TestAnswersAfterTheEnd: a group leaves two answers a peer that nobody asks for, of no
// bytes. They say nothing to later groups over the same transport, whose senders keep
// as close to their receivers as those of the first.
func TestAnswersAfterTheEnd(t *testing.T) {
	const ended, length = 5, 10 << 18 // 163 pieces, of which 5 are answered
	var left, sent, received, most atomic.Int64
	transports := inproc.NewOn(alone(2))
	group := func(name string) []*collective.Group {
		groups := make([]*collective.Group, 2)
		for r, transport := range transports {
			groups[r] = collective.NewGroup(&ahead{&answering{transport, &left}, &sent, &received, &most, func() {}},
				collective.GroupConfig{Name: name, Packed: collective.PackAcrossHosts})
		}
		return groups
	}
	for i := range ended + 1 {
		groups := group(fmt.Sprint(i))
		want := gradients(uint64(i), device.F32, length, false)
		most.Store(0)
		var all errgroup.Group
		for r, g := range groups {
			all.Go(func() error {
				values := want
				if r == 1 {
					values = device.FromF32(make([]float32, length))
				}
				err := collective.Run(context.Background(), g, collective.Call{Kind: plan.Broadcast, In: values})
				if err == nil && !bytes.Equal(values.Bytes(), want.Bytes()) {
					err = fmt.Errorf("rank %d has other values of group %d", r, i)
				}
				return err
			})
		}
		require.NoError(t, all.Wait())
		require.LessOrEqual(t, most.Load(), int64(64), "two windows")
		for _, g := range groups {
			require.NoError(t, g.Close())
		}
		require.LessOrEqual(t, left.Load(), int64(2*(i+1)))
	}
	for _, transport := range transports {
		require.NoError(t, transport.Close())
	}
}
