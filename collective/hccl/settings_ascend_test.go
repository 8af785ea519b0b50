//go:build ascend

package hccl_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/wire"
)

// TestReduceHalves: the device's own sum of 16-bit floats, scaled before for a
// mean, on every kind that reduces.
func TestReduceHalves(t *testing.T) {
	w := start(t, 3, func(c *hccl.Config) { c.ReduceHalves = true })
	for _, err := range w.each(func(ctx context.Context, c collective.Comm) error {
		for _, op := range []collective.Op{collective.Sum, collective.Mean} {
			want := map[collective.Op]float32{collective.Sum: 9, collective.Mean: 3}[op]
			b, part := device.FromBytes(device.F16, make([]byte, 10)), device.FromBytes(device.F16, make([]byte, 2))
			for i := range b.U16() {
				b.U16()[i] = device.F32ToF16(3)
			}
			own := part
			if c.Rank() < 2 {
				own = device.FromBytes(device.F16, make([]byte, 4))
			}
			if err := collective.ReduceScatter(ctx, c, op, own, b); err != nil || device.F16ToF32(own.U16()[0]) != want {
				return fmt.Errorf("reduce-scatter %v: %v, %w", op, own.U16(), err)
			}
			if err := collective.AllReduce(ctx, c, op, b); err != nil || device.F16ToF32(b.U16()[4]) != want {
				return fmt.Errorf("all-reduce %v: %v, %w", op, b.U16(), err)
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
}

// TestHalvedWires: so it is with codecs of 16-bit floats, in several pieces too.
func TestHalvedWires(t *testing.T) {
	w := start(t, 3, func(c *hccl.Config) { c.ReduceHalves = true })
	for _, err := range w.each(func(ctx context.Context, c collective.Comm) error {
		for _, bfloat := range []bool{false, true} {
			for _, op := range []collective.Op{collective.Sum, collective.Mean} {
				want := map[collective.Op]float32{collective.Sum: 9, collective.Mean: 3}[op]
				b := make([]float32, 3_000_001)
				for i := range b {
					b[i] = 3
				}
				call := collective.Call{Kind: plan.AllReduce, Op: op, In: device.FromF32(b), Codec: &wire.Codec{Format: wire.NewHalf(bfloat)}}
				if err := collective.Run(ctx, c, call); err != nil {
					return err
				}
				if at := slices.IndexFunc(b, func(x float32) bool { return x != want }); at >= 0 {
					return fmt.Errorf("bfloat %v, %v: element %d is %v", bfloat, op, at, b[at])
				}
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
}

// TestPinned: buffers of Alloc are where the device copies from and to, also in
// several pieces and as parts of others.
func TestPinned(t *testing.T) {
	w := start(t, 2)
	for _, err := range w.each(func(ctx context.Context, c collective.Comm) error {
		const n = 3_000_001 // three pieces
		b, err := c.Alloc(ctx, device.F32, n)
		if err != nil {
			return err
		}
		for i := range b.F32() {
			b.F32()[i] = float32(i%100 + c.Rank())
		}
		if err := collective.AllReduce(ctx, c, collective.Mean, b.Slice(1, n)); err != nil {
			return err
		}
		for i, x := range b.F32()[1:] {
			if x != float32((i+1)%100)+0.5 {
				return fmt.Errorf("element %d is %v", i+1, x)
			}
		}
		return collective.AllGather(ctx, c, b.Slice(0, 2), b.Slice(c.Rank(), c.Rank()+1))
	}) {
		require.NoError(t, err)
	}
}

// TestSpans: copies and the call are seen, and the copies of one call go on beside
// another one.
func TestSpans(t *testing.T) {
	events := observe.NewRecorder(64)
	w := start(t, 2, func(c *hccl.Config) {
		if c.Rank == 0 {
			c.Events = events
		}
	})
	for _, err := range w.each(func(ctx context.Context, c collective.Comm) error {
		return collective.AllReduce(ctx, c, collective.Sum, device.FromF32(make([]float32, 100)))
	}) {
		require.NoError(t, err)
	}
	var lanes []string
	events.Drain(func(s observe.Span) {
		require.LessOrEqual(t, s.Start, s.End)
		lanes = append(lanes, s.Lane)
		if s.Kind == observe.Call && s.Lane == "world" {
			require.Equal(t, int64(400), s.Bytes)
		}
	})
	slices.Sort(lanes)
	require.Equal(t, []string{"world", "world", "world from device", "world to device"}, lanes)
}
