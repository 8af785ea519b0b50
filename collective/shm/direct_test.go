//go:build linux && (amd64 || arm64)

package shm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// groups runs f on every rank of a fresh world, each with its Group.
func groups(t *testing.T, n int, f func(ctx context.Context, g *collective.Group, tr *Transport) error) {
	t.Helper()
	ranks := world(t, n)
	var all errgroup.Group
	for _, tr := range ranks {
		all.Go(func() error {
			g := collective.NewGroup(tr, collective.GroupConfig{Timeout: testTimeout})
			err := f(t.Context(), g, tr)
			if err == nil {
				err = collective.Barrier(t.Context(), g)
			}
			return errors.Join(err, g.Close())
		})
	}
	require.NoError(t, all.Wait())
	closeAllRanks(t, ranks)
}

func types() []device.Type {
	return []device.Type{device.F32, device.F16, device.BF16, device.F64, device.I32, device.I64, device.I8, device.U8}
}

// fill makes arbitrary finite values that differ by rank and element, of any sign
// and of exponents near each other, so that sums round.
func fill(b device.Buf, rank int) {
	x := uint64(rank+1)*0x9e3779b97f4a7c15 + uint64(b.Len)
	for i := range b.Len {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		switch b.Type {
		case device.F32:
			b.F32()[i] = math.Float32frombits(uint32(x)&0x807fffff | uint32(120+x>>32&7)<<23)
		case device.F64:
			b.F64()[i] = math.Float64frombits(x&0x800fffffffffffff | (1020+x>>20&7)<<52)
		case device.BF16:
			b.U16()[i] = uint16(x)&0x807f | uint16(120+x>>32&15)<<7
		case device.F16: // any exponent but the largest, that of infinity
			b.U16()[i] = uint16(x>>16)&0x8000 | uint16(x>>32&0xffff)%0x7400
		case device.I32:
			b.I32()[i] = int32(x >> 16)
		case device.I64:
			b.I64()[i] = int64(x)
		default:
			b.Bytes()[i] = byte(x >> 24)
		}
	}
}

// reference reduces all ranks' values in rank order, by the plain loops of a
// group of one rank per part.
func reference(op collective.Op, typ device.Type, n, length int) device.Buf {
	want := device.FromBytes(typ, make([]byte, length*typ.Size()))
	var parts []device.Buf
	for r := range n {
		b := device.FromBytes(typ, make([]byte, length*typ.Size()))
		fill(b, r)
		parts = append(parts, b)
	}
	foldReference(op, want, parts)
	return want
}

// TestEveryReductionEqualsThePlan to the bit: the direct plan over messages, for
// all operations and types, in shared, private and mixed memory, by all paths.
func TestEveryReductionEqualsThePlan(t *testing.T) {
	counts := []int{2, 3, 5}
	if testing.Short() {
		counts = counts[1:2]
	}
	for _, n := range counts {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			var once sync.Map // references, which all ranks need
			expected := func(op collective.Op, typ device.Type, length int) device.Buf {
				want, _ := once.LoadOrStore(fmt.Sprint(op, typ, length), sync.OnceValue(func() device.Buf { return reference(op, typ, n, length) }))
				return want.(func() device.Buf)()
			}
			groups(t, n, func(ctx context.Context, g *collective.Group, tr *Transport) error {
				for _, length := range lengthsFor(n) {
					for _, typ := range types() {
						for _, op := range []collective.Op{collective.Sum, collective.Mean, collective.Max, collective.Prod} {
							if length > 30_000 && (op != collective.Sum || typ > device.BF16) || length == 1009 && n == 3 {
								continue
							}
							if err := reduceEveryWay(ctx, g, op, expected(op, typ, length)); err != nil {
								return fmt.Errorf("%v of %d %v: %w", op, length, typ, err)
							}
						}
					}
				}
				return nil
			})
		})
	}
}

// lengthsFor is brief where the ranks share processors and where time is short:
// TestManyWindows has long vectors.
func lengthsFor(n int) []int {
	if n > 3 || testing.Short() {
		return []int{1, 20_011}
	}
	return []int{1, 1009, 20_011, 150_001}
}

func reduceEveryWay(ctx context.Context, g *collective.Group, op collective.Op, want device.Buf) error {
	n, typ, length := g.Size(), want.Type, want.Len
	private := func() device.Buf { return device.FromBytes(typ, make([]byte, length*typ.Size())) }
	shared, err := g.Alloc(ctx, typ, length)
	if err != nil {
		return err
	}
	for _, memory := range []string{"private", "shared", "mixed"} {
		for _, inPlace := range []bool{true, false} {
			in := private()
			if memory == "shared" || memory == "mixed" && g.Rank() == n-1 {
				in = shared
			}
			fill(in, g.Rank())
			before := bytes.Clone(in.Bytes())
			c := collective.Call{Kind: plan.AllReduce, Op: op, In: in}
			out := in
			if !inPlace {
				out = private()
				c.Out = out
			}
			if err := g.Start(ctx, c).Wait(ctx); err != nil {
				return err
			}
			if !bytes.Equal(out.Bytes(), want.Bytes()) {
				return fmt.Errorf("%s, in place %v: differs from the fold in rank order", memory, inPlace)
			}
			if !inPlace && !bytes.Equal(in.Bytes(), before) {
				return fmt.Errorf("%s: the input was changed", memory)
			}
			root := length % n
			fill(in, g.Rank())
			c = collective.Call{Kind: plan.Reduce, Op: op, Root: root, In: in}
			if err := g.Start(ctx, c).Wait(ctx); err != nil {
				return err
			}
			if g.Rank() == root && !bytes.Equal(in.Bytes(), want.Bytes()) {
				return fmt.Errorf("reduce, %s: differs from the fold in rank order", memory)
			}
			if err := scatterParts(ctx, g, op, in, want, inPlace); err != nil {
				return fmt.Errorf("reduce-scatter, %s, in place %v: %w", memory, inPlace, err)
			}
			if err := moveEverywhere(ctx, g, in, shared, inPlace); err != nil {
				return fmt.Errorf("%s, in place %v: %w", memory, inPlace, err)
			}
		}
	}
	return nil
}

// bounds are uneven parts, one of them empty.
func bounds(n, length int) []int {
	b := make([]int, n+1)
	for r := range n {
		b[r+1] = min(length, b[r]+length*(2*r)/(n*(n-1)))
	}
	b[n] = length
	return b
}

func scatterParts(ctx context.Context, g *collective.Group, op collective.Op, in, want device.Buf, inPlace bool) error {
	for _, cuts := range [][]int{nil, bounds(g.Size(), in.Len)} {
		fill(in, g.Rank())
		parts := cuts
		if parts == nil {
			parts = plan.Cut(in.Len, g.Size())
		}
		lo, hi := parts[g.Rank()], parts[g.Rank()+1]
		c := collective.Call{Kind: plan.ReduceScatter, Op: op, In: in, InBounds: cuts}
		out := in.Slice(lo, hi)
		if !inPlace {
			out = device.FromBytes(in.Type, make([]byte, out.Size()))
			c.Out = out
		}
		if err := g.Start(ctx, c).Wait(ctx); err != nil {
			return err
		}
		if !bytes.Equal(out.Bytes(), want.Slice(lo, hi).Bytes()) {
			return fmt.Errorf("parts %v: differs from the fold in rank order", parts)
		}
	}
	return nil
}

// moveEverywhere broadcasts and gathers; shared memory is the output when in is
// shared.
func moveEverywhere(ctx context.Context, g *collective.Group, in, shared device.Buf, inPlace bool) error {
	root := in.Len % g.Size()
	want := device.FromBytes(in.Type, make([]byte, in.Size()))
	fill(in, g.Rank())
	fill(want, root)
	c := collective.Call{Kind: plan.Broadcast, Root: root, In: in}
	out := in
	if !inPlace {
		out = device.FromBytes(in.Type, make([]byte, in.Size()))
		c.Out = out
	}
	if err := g.Start(ctx, c).Wait(ctx); err != nil {
		return err
	}
	if !bytes.Equal(out.Bytes(), want.Bytes()) {
		return errors.New("broadcast differs from the root's buffer")
	}
	for _, cuts := range [][]int{nil, bounds(g.Size(), in.Len)} {
		parts := cuts
		if parts == nil {
			parts = plan.Cut(in.Len, g.Size())
		}
		for r := range g.Size() {
			b := device.FromBytes(in.Type, make([]byte, in.Size()))
			fill(b, r)
			copy(want.Slice(parts[r], parts[r+1]).Bytes(), b.Slice(parts[r], parts[r+1]).Bytes())
		}
		fill(in, g.Rank())
		own := device.FromBytes(in.Type, bytes.Clone(in.Slice(parts[g.Rank()], parts[g.Rank()+1]).Bytes()))
		c := collective.Call{Kind: plan.AllGather, In: own, Out: in, InBounds: cuts}
		if inPlace {
			c.In, c.Out = in, device.Buf{}
		} else {
			clear(in.Bytes())
		}
		if err := g.Start(ctx, c).Wait(ctx); err != nil {
			return err
		}
		if !bytes.Equal(in.Bytes(), want.Bytes()) {
			return fmt.Errorf("all-gather of parts %v differs", parts)
		}
	}
	return nil
}

// TestManyWindows moves more than the windows hold.
func TestManyWindows(t *testing.T) {
	counts := []int{2, 3}
	if testing.Short() {
		counts = counts[:1]
	}
	for _, n := range counts {
		groups(t, n, func(ctx context.Context, g *collective.Group, tr *Transport) error {
			const length = 1_500_001
			want := reference(collective.Sum, device.F32, n, length)
			shared, err := g.Alloc(ctx, device.F32, length)
			if err != nil {
				return err
			}
			for _, in := range []device.Buf{device.FromF32(make([]float32, length)), shared} {
				for range 3 {
					fill(in, g.Rank())
					if err := collective.AllReduce(ctx, g, collective.Sum, in); err != nil {
						return err
					}
					if !bytes.Equal(in.Bytes(), want.Bytes()) {
						return errors.New("all-reduce differs from the fold in rank order")
					}
				}
				if err := scatterParts(ctx, g, collective.Sum, in, want, false); err != nil {
					return err
				}
				if err := moveEverywhere(ctx, g, in, shared, true); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
