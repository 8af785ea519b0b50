package commtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/wire"
)

// plainCodec sends float32 as they are, so that sums are exact, and notes which
// elements it was given.
type plainCodec struct {
	begun, encoded, summed []bool
}

func (c *plainCodec) Name() string { return "plain" }

func (c *plainCodec) EncodedLen(n int) int { return 4 * n }

func (c *plainCodec) Begin(own []float32, at int) { note(c.begun, at, len(own)) }

func (c *plainCodec) Encode(dst []byte, src []float32, at int) {
	note(c.encoded, at, len(src))
	putFloats(dst, src)
}

func (c *plainCodec) EncodeSum(dst []byte, sum []float32, at int) {
	note(c.summed, at, len(sum))
	putFloats(dst, sum)
}

func (c *plainCodec) Decode(dst []float32, src []byte) {
	clear(dst)
	c.DecodeAdd(dst, src)
}

func (c *plainCodec) DecodeAdd(dst []float32, src []byte) {
	for i := range dst {
		dst[i] += math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func note(seen []bool, at, n int) {
	for i := at; i < at+n; i++ {
		if seen[i] {
			panic(fmt.Sprintf("element %d is encoded twice", i))
		}
		seen[i] = true
	}
}

func putFloats(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

// testCodecs runs all-reduces of encoded values: exactly with a format that
// keeps all, and every real one within its error, equal to the bit on all ranks.
func testCodecs(t *testing.T, connect Connect) {
	for _, n := range rankCounts(1, 2, 3, 4, 5, 8) {
		groups(t, connect, n, collective.GroupConfig{}, func(ctx context.Context, g *collective.Group) error {
			for _, length := range []int{0, 1, n - 1, n, n + 1, 1009, 70_001} {
				if err := exactCodec(ctx, g, length, false); err != nil {
					return err
				}
			}
			for _, name := range wire.Names() {
				for _, length := range []int{1, 1009, 70_001} {
					if err := lossyCodec(ctx, g, name, length, false); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

// testCodecsOfManyPieces does so with vectors of many pieces, over links that are and
// are not known to be slow, over which one goroutine does all.
func testCodecsOfManyPieces(t *testing.T, connect Connect) {
	rates := []float64{100e6, 0}
	if testing.Short() {
		rates = rates[:1]
	}
	for _, rate := range rates {
		for _, n := range rankCounts(2, 3) {
			config := collective.GroupConfig{Links: plan.Links{Across: plan.Link{BytesPerSecond: rate}}}
			groups(t, connect, n, config, func(ctx context.Context, g *collective.Group) error {
				if err := exactCodec(ctx, g, 120_000*n+7, false); err != nil { // eight pieces
					return fmt.Errorf("links of %v bytes a second: %w", rate, err)
				}
				return lossyCodec(ctx, g, "f16", 240_000*n, false)
			})
		}
	}
}

// testCodecsAcrossHosts does so where only what goes from host to host is
// encoded.
func testCodecsAcrossHosts(t *testing.T, connect Connect) {
	for _, hosts := range [][][]int{{{0, 1, 2}}, {{0, 2}, {1, 3}}, {{0, 1, 2}, {3, 4}}, {{0, 3}, {1}, {2, 4}}} {
		n := 0
		for _, host := range hosts {
			n += len(host)
		}
		with(t, connect, n, func(w *world) {
			w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
				g := collective.NewGroup(rehosted{tr, hosts}, collective.GroupConfig{})
				defer g.Close()
				for _, length := range []int{0, 1, n + 1, 1009, 150_001} {
					if err := exactCodec(ctx, g, length, true); err != nil {
						return fmt.Errorf("hosts %v: %w", hosts, err)
					}
				}
				if err := lossyCodec(ctx, g, "int8", 70_001, true); err != nil {
					return fmt.Errorf("hosts %v: %w", hosts, err)
				}
				return collective.Barrier(ctx, g)
			})
		})
	}
}

// Encoded tests all-reduces of encoded values of any Comm: all of them, or only what
// goes from host to host.
func Encoded(ctx context.Context, c collective.Comm, acrossHosts bool) error {
	n := c.Size()
	for _, length := range []int{0, 1, n - 1, n, n + 1, 1009, 10_007} {
		if err := exactCodec(ctx, c, length, acrossHosts); err != nil {
			return err
		}
	}
	for _, name := range wire.Names() {
		for _, length := range []int{1, 1009, 10_007} {
			if err := lossyCodec(ctx, c, name, length, acrossHosts); err != nil {
				return err
			}
		}
	}
	return nil
}

// exactCodec compares sums and means of small integers with the right ones, in
// place and not, and looks who encodes what.
func exactCodec(ctx context.Context, g collective.Comm, length int, acrossHosts bool) error {
	for _, op := range []collective.Op{collective.Sum, collective.Mean} {
		tr := trial{kind: plan.AllReduce, op: op, typ: device.F32, length: length}
		want := pack(device.F32, tr.combined(g.Size(), 0, length))
		for _, inPlace := range []bool{true, false} {
			codec := &plainCodec{make([]bool, length), make([]bool, length), make([]bool, length)}
			in := pack(device.F32, tr.values(g.Size(), g.Rank(), 0, length))
			before, out := bytes.Clone(in.Bytes()), in
			c := collective.Call{Kind: plan.AllReduce, Op: op, In: in, Codec: codec, AcrossHosts: acrossHosts}
			if !inPlace {
				out = device.FromF32(make([]float32, length))
				c.Out = out
			}
			if err := g.Start(ctx, c).Wait(ctx); err != nil {
				return err
			}
			if !bytes.Equal(out.Bytes(), want.Bytes()) {
				return fmt.Errorf("%v of %d encoded values, in place %v: got %v, want %v", op, length, inPlace, unpack(out), unpack(want))
			}
			if !inPlace && !bytes.Equal(before, in.Bytes()) {
				return fmt.Errorf("%v of %d encoded values: the input was changed", op, length)
			}
			for i := range length {
				once := codec.begun[i] != codec.encoded[i]
				if codec.begun[i] != codec.summed[i] || codec.begun[i] && !once || g.Size() > 1 && !acrossHosts && !once {
					return fmt.Errorf("element %d of %d: begun %v, summed %v, encoded %v", i, length, codec.begun[i], codec.summed[i], codec.encoded[i])
				}
			}
		}
	}
	return nil
}

// lossyCodec sums random numbers. Each format's error is bounded by a share of
// the largest magnitude for each of the encodings that a value goes through: n-1
// contributions and the sum of n; top-k, which leaves most out, is not bounded.
func lossyCodec(ctx context.Context, g collective.Comm, name string, length int, acrossHosts bool) error {
	n := g.Size()
	format, err := wire.New(wire.Config{Name: name})
	if format == nil || err != nil {
		return err
	}
	bound := map[string]float64{"f16": 1.0 / 1024, "bf16": 1.0 / 128, "int8": 1.0 / 100, "int4": 1.0 / 6, "topk": 1}[name] * float64(2*n)
	want := make([]float64, length)
	var mine []float32
	for r := range n {
		rng := rand.New(rand.NewPCG(uint64(r), uint64(length)))
		x := make([]float32, length)
		for i := range x {
			x[i] = 2*rng.Float32() - 1
			want[i] += float64(x[i])
		}
		if r == g.Rank() {
			mine = x
		}
	}
	codec := &wire.Codec{Format: format, Base: wire.Seed(uint64(g.Rank()), uint64(length))}
	if err := g.Start(ctx, collective.Call{Kind: plan.AllReduce, In: device.FromF32(mine), Codec: codec, AcrossHosts: acrossHosts}).Wait(ctx); err != nil {
		return err
	}
	for i, x := range mine {
		if e := math.Abs(float64(x) - want[i]); !(e <= bound) {
			return fmt.Errorf("%s of %d on %d ranks: element %d is %v, not %v", name, length, n, i, x, want[i])
		}
	}
	all := make([]float32, n*length)
	if err := collective.AllGather(ctx, g, device.FromF32(all), device.FromF32(mine)); err != nil {
		return err
	}
	for r := range n {
		if !bytes.Equal(device.FromF32(all[r*length:(r+1)*length]).Bytes(), device.FromF32(all[:length]).Bytes()) {
			return fmt.Errorf("%s of %d on %d ranks: rank %d has other bits than rank 0", name, length, n, r)
		}
	}
	return nil
}
