//go:build ascend

package hccl_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
)

// halves is a codec of f16, in which small integers are exact.
type halves struct{}

func (halves) Name() string         { return "halves" }
func (halves) EncodedLen(n int) int { return 2 * n }
func (halves) Begin([]float32, int) {}
func (halves) Decode(d []float32, s []byte) {
	for i := range d {
		d[i] = device.F16ToF32(uint16(s[2*i]) | uint16(s[2*i+1])<<8)
	}
}

func (halves) DecodeAdd(d []float32, s []byte) {
	for i := range d {
		d[i] += device.F16ToF32(uint16(s[2*i]) | uint16(s[2*i+1])<<8)
	}
}

func (halves) Encode(d []byte, v []float32, _ int) {
	for i, x := range v {
		h := device.F32ToF16(x)
		d[2*i], d[2*i+1] = byte(h), byte(h>>8)
	}
}

func (c halves) EncodeSum(d []byte, v []float32, at int) { c.Encode(d, v, at) }

// TestNothingEncodedAlone: a rank that sends to nobody loses nothing.
func TestNothingEncodedAlone(t *testing.T) {
	const third = float32(1) / 3 // no f16
	b := []float32{third}
	c := start(t, 1).comms[0]
	require.NoError(t, collective.Run(t.Context(), c, collective.Call{Kind: plan.AllReduce, In: device.FromF32(b), Codec: halves{}}))
	require.Equal(t, third, b[0])
}

func TestEncodedValues(t *testing.T) {
	w := start(t, 3)
	for _, err := range w.each(func(ctx context.Context, c collective.Comm) error {
		for _, length := range []int{0, 1, 2, 3, 1000, 5003} {
			for _, op := range []collective.Op{collective.Sum, collective.Mean} {
				b := make([]float32, length)
				for i := range b {
					b[i] = float32(3*(i%7) + 3*c.Rank())
				}
				if err := collective.Run(ctx, c, collective.Call{Kind: plan.AllReduce, Op: op, In: device.FromF32(b), Codec: halves{}}); err != nil {
					return err
				}
				for i, x := range b {
					want := float32(9*(i%7) + 9)
					if op == collective.Mean {
						want /= 3
					}
					if x != want {
						return fmt.Errorf("%v of %d: element %d is %v, not %v", op, length, i, x, want)
					}
				}
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
}

// TestSpansOfEncodedValues: the call is seen, with what it sent: its encoded vector
// and its part of the result.
func TestSpansOfEncodedValues(t *testing.T) {
	events := observe.NewRecorder(64)
	w := start(t, 2, func(c *hccl.Config) {
		if c.Rank == 0 {
			c.Events = events
		}
	})
	for _, err := range w.each(func(ctx context.Context, c collective.Comm) error {
		return collective.Run(ctx, c, collective.Call{Kind: plan.AllReduce, In: device.FromF32(make([]float32, 100)), Codec: halves{}})
	}) {
		require.NoError(t, err)
	}
	var calls []int64
	events.Drain(func(s observe.Span) {
		if s.Kind == observe.Call && s.Lane == "world" {
			calls = append(calls, s.Bytes)
		}
	})
	require.Equal(t, []int64{200 + 100}, calls)
}
