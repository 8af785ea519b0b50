//go:build ascend

package hccl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// onDevice is memory of the device that holds values.
func onDevice(d *ascend.Device, values ...float32) (device.Buf, error) {
	b, err := d.Alloc(device.F32, len(values))
	if err != nil {
		return b, err
	}
	return b, d.Move(b, device.FromF32(values))
}

// holds reports what the device's memory does not hold that it should.
func holds(d *ascend.Device, b device.Buf, want ...float32) error {
	got := make([]float32, b.Len)
	if err := d.Move(device.FromF32(got), b); err != nil || !slices.Equal(want, got) {
		return fmt.Errorf("%v instead of %v, %w", got, want, err)
	}
	return nil
}

// TestDeviceMemory: calls on the device's own memory, which the host never sees.
func TestDeviceMemory(t *testing.T) {
	const n = 3
	w := start(t, n)
	for _, err := range w.each(func(ctx context.Context, c collective.Comm) error {
		d, r := w.devices[c.Rank()], float32(c.Rank())
		b, err := onDevice(d, r, r+1, r+2)
		if err != nil {
			return err
		}
		all, err := d.Alloc(device.F32, n)
		if err != nil {
			return err
		}
		right, left := (c.Rank()+1)%n, (c.Rank()+n-1)%n
		errs := []error{
			collective.AllReduce(ctx, c, collective.Sum, b), holds(d, b, 3, 6, 9),
			d.Move(b, device.FromF32([]float32{r, r, r})),
			collective.Broadcast(ctx, c, 1, b), holds(d, b, 1, 1, 1),
			d.Move(b, device.FromF32([]float32{r, r, r})),
			collective.AllGather(ctx, c, all, b.Slice(0, 1)), holds(d, all, 0, 1, 2),
			collective.ReduceScatter(ctx, c, collective.Max, b.Slice(1, 2), all), holds(d, b, r, r, r),
			c.Start(ctx, collective.Call{Kind: plan.AllToAll, In: b, Out: all}).Wait(ctx), holds(d, all, 0, 1, 2),
			c.Exchange(ctx, []collective.PointToPoint{{Peer: right, Buf: b}, {Peer: left, Recv: true, Buf: all}}).Wait(ctx), holds(d, all, float32(left), float32(left), float32(left)),
			c.Exchange(ctx, []collective.PointToPoint{{Peer: c.Rank(), Buf: b}, {Peer: c.Rank(), Recv: true, Buf: all}}).Wait(ctx), holds(d, all, r, r, r),
			d.Release(b),
		}
		return errors.Join(errs...) // all is released with the device
	}) {
		require.NoError(t, err)
	}
}

// TestOnlyHostMemory: what the host does a part of.
func TestOnlyHostMemory(t *testing.T) {
	for what, call := range map[string]collective.Call{
		"a mean, which is divided on the host,":                         {Kind: plan.AllReduce, Op: collective.Mean},
		"a reduction that the chip lacks, or rounds at every addition,": {Kind: plan.AllReduce, Op: collective.Sum, In: device.Buf{Type: device.F16}},
		"a sum in the order of a ring":                                  {Kind: plan.AllReduce, Algorithm: "ring"},
		"a codec":                                                       {Kind: plan.AllReduce, Codec: halves{}},
		"a call of unequal parts":                                       {Kind: plan.AllGather, InBounds: []int{0, 3, 4, 4}},
	} {
		t.Run(what, func(t *testing.T) {
			w := start(t, 3)
			b, err := w.devices[0].Alloc(call.In.Type, 4)
			require.NoError(t, err)
			call.In = b
			if call.Kind == plan.AllGather {
				call.In, call.Out = b.Slice(0, 3), b
			}
			require.ErrorContains(t, w.comms[0].Start(t.Context(), call).Wait(t.Context()), what+" is for the host's memory")
		})
	}
}
