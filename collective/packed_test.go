package collective_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/wire"
	"github.com/gradfusion/gradfusion/wire/pack"
)

// counting counts the bytes that go to other hosts, where there are some, and may spoil
// them. Notices are not counted: how many there are is a matter of time.
type counting struct {
	collective.Transport
	bytes *atomic.Int64
	spoil bool
}

func (c *counting) Send(ctx context.Context, to int, tag collective.Tag, b []byte) error {
	for _, host := range c.Hosts() {
		if !collective.IsNotice(tag) && slices.Contains(host, to) && (len(c.Hosts()) == 1 || !slices.Contains(host, c.Rank())) {
			c.bytes.Add(int64(len(b)))
		}
	}
	if c.spoil && len(b) > 4096 {
		b = slices.Clone(b)
		b[collective.HeadSize] = 77 // no kind of a block
	}
	return c.Transport.Send(ctx, to, tag, b)
}

func (c *counting) SendFilled(ctx context.Context, to int, tag collective.Tag, stage []byte, fill func([]byte) []byte) error {
	return collective.SendStaged(ctx, c, to, tag, stage, fill)
}

// packedGroups are groups over such transports.
func packedGroups(t *testing.T, hosts [][]int, c collective.GroupConfig, spoil bool) ([]*collective.Group, *atomic.Int64) {
	bytes := &atomic.Int64{}
	groups := make([]*collective.Group, len(slices.Concat(hosts...)))
	for r, transport := range inproc.NewOn(hosts) {
		groups[r] = collective.NewGroup(&counting{transport, bytes, spoil}, c)
		t.Cleanup(func() {
			require.NoError(t, groups[r].Close())
			require.NoError(t, transport.Close())
		})
	}
	return groups, bytes
}

// gradients are n values that shrink, or any bits.
func gradients(seed uint64, typ device.Type, n int, wild bool) device.Buf {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n*typ.Size()+4)
	for i := range n {
		bits := math.Float32bits(float32(r.NormFloat64()))
		switch {
		case wild:
			bits = r.Uint32()
		case typ == device.F16:
			bits = bits&0x80000000 | (0x3800+uint32(r.IntN(0x800)))<<16
		}
		at := b[i*typ.Size():]
		if typ == device.F32 {
			binary.LittleEndian.PutUint32(at, bits)
		} else {
			binary.LittleEndian.PutUint16(at, uint16(bits>>16))
		}
	}
	return device.FromBytes(typ, b[:n*typ.Size()])
}

// packedCase is a call of every rank.
type packedCase struct {
	kind      plan.Kind
	typ       device.Type
	length    int
	algorithm string
	wild      bool
	wire      string
}

// run returns what the ranks have in the end, and the bytes that went between hosts.
func (c packedCase) run(t *testing.T, hosts [][]int, packed collective.Packing) ([][]byte, int64) {
	groups, sent := packedGroups(t, hosts, collective.GroupConfig{Links: slow, Packed: packed}, false)
	out := make([][]byte, len(groups))
	var all errgroup.Group
	for r, g := range groups {
		all.Go(func() error {
			n := c.length
			in := gradients(uint64(r), c.typ, n, c.wild)
			call := collective.Call{Kind: c.kind, Algorithm: c.algorithm, In: in}
			if c.wire != "" {
				format, err := wire.New(wire.Config{Name: c.wire})
				if err != nil {
					return err
				}
				call.Codec = &wire.Codec{Format: format}
			}
			if c.kind == plan.AllGather {
				bounds := plan.Cut(n, len(groups))
				call.In, call.Out = in.Slice(bounds[r], bounds[r+1]), gradients(9, c.typ, n, true)
			}
			if err := collective.Run(context.Background(), g, call); err != nil {
				return err
			}
			if out[r] = call.In.Bytes(); call.Out.Len > 0 {
				out[r] = call.Out.Bytes()
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	return out, sent.Load()
}

// Packed or not, calls give the same bits, NaN of any bits too, and gradients are
// fewer bytes on their way; any bits are not more.
func TestPacked(t *testing.T) {
	layouts, types := [][][]int{{{0, 1}, {2, 3}}, alone(2), alone(3)}, []device.Type{device.F32, device.F16, device.BF16, device.I32}
	if testing.Short() {
		layouts, types = layouts[:1], types[:2]
	}
	for _, hosts := range layouts {
		for _, typ := range types {
			for _, c := range []packedCase{
				{plan.AllReduce, typ, 20, "ring", false, ""},
				{plan.AllReduce, typ, 40_001, "ring", false, ""},
				{plan.AllReduce, typ, 300_007, "", false, ""},
				{plan.AllReduce, typ, 300_007, "tree", false, ""},
				{plan.AllGather, typ, 200_001, "", false, ""},
				{plan.AllGather, typ, 100_001, "", true, ""},
				{plan.ReduceScatter, typ, 200_001, "", false, ""},
				{plan.Broadcast, typ, 50_001, "", false, ""},
				{plan.AllToAll, typ, 100_002 * len(hosts), "", false, ""},
			} {
				name := fmt.Sprintf("%v, %+v", hosts, c)
				want, plain := c.run(t, hosts, collective.PackNothing)
				got, packed := c.run(t, hosts, collective.PackAcrossHosts)
				require.Equal(t, want, got, name)
				most := map[device.Type]float64{device.F32: 0.85, device.F16: 0.87, device.BF16: 0.7}[typ]
				if most == 0 || c.length < 100 || c.wild {
					most = 1.003 // pieces have headers of their own
				}
				require.LessOrEqual(t, float64(packed), most*float64(plain), name)
			}
		}
	}
}

// TestPackedCodec: what a Codec makes of floats is packed too.
func TestPackedCodec(t *testing.T) {
	for name, most := range map[string]float64{"f16": 0.88, "bf16": 0.7, "int8": 1} {
		c := packedCase{plan.AllReduce, device.F32, 300_007, "", false, name}
		want, plain := c.run(t, alone(3), collective.PackNothing)
		got, packed := c.run(t, alone(3), collective.PackAcrossHosts)
		require.Equal(t, want, got, name)
		require.LessOrEqual(t, float64(packed), most*float64(plain), name)
	}
}

// TestPackedWindow: values of many pieces wait for their receiver and come whole.
func TestPackedWindow(t *testing.T) {
	for _, length := range []int{64 * 16128, 64*16128 + 1, 96 * 16128, 3_000_000} { // about the ends of windows
		c := packedCase{plan.Broadcast, device.F32, length, "ring", false, ""}
		want, _ := c.run(t, alone(2), collective.PackNothing)
		got, _ := c.run(t, alone(2), collective.PackAcrossHosts)
		require.Equal(t, want, got, length)
	}
}

// TestPackedSpoilt: bytes that are no packed values are an error on all ranks, which
// says whose they are.
func TestPackedSpoilt(t *testing.T) {
	groups, _ := packedGroups(t, alone(2), collective.GroupConfig{Packed: collective.PackAcrossHosts, Timeout: time.Minute}, true)
	errs := make([]error, 2)
	var all errgroup.Group
	for r, g := range groups {
		all.Go(func() error {
			call := collective.Call{Kind: plan.Broadcast, In: gradients(1, device.F32, 10_000, false)}
			if errs[r] = collective.Run(context.Background(), g, call); errs[r] == nil {
				errs[r] = collective.Barrier(context.Background(), g)
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	var failure *collective.PeerError
	require.True(t, errors.As(errs[1], &failure), errs[1])
	require.Equal(t, 0, failure.Peer)
	require.ErrorContains(t, errs[1], "its packed values: a packed block of unknown kind 77")
	require.Error(t, errs[0])
}

// TestPackedSteady: a call of a known shape allocates no memory for its values.
func TestPackedSteady(t *testing.T) {
	groups, _ := packedGroups(t, alone(2), collective.GroupConfig{Links: slow, Packed: collective.PackAcrossHosts}, false)
	values := []device.Buf{gradients(1, device.F32, 200_000, false), gradients(2, device.F32, 200_000, false)}
	step := func() {
		var all errgroup.Group
		for r, g := range groups {
			all.Go(func() error {
				return collective.Run(context.Background(), g, collective.Call{Kind: plan.AllReduce, In: values[r]})
			})
		}
		require.NoError(t, all.Wait())
	}
	step()
	require.Less(t, testing.AllocsPerRun(5, step), 60.0) // goroutines and messages of the transport, not one a piece
}

// TestPackAll: inside a host too, where that was asked for.
func TestPackAll(t *testing.T) {
	c := packedCase{plan.AllReduce, device.F32, 50_001, "direct", false, ""}
	want, plain := c.run(t, [][]int{{0, 1, 2}}, collective.PackAcrossHosts)
	got, packed := c.run(t, [][]int{{0, 1, 2}}, collective.PackAll)
	require.Equal(t, want, got)
	require.Less(t, float64(packed), 0.85*float64(plain))
}

// TestPackingPays: on slow links between hosts, and all ranks say the same.
func TestPackingPays(t *testing.T) {
	for rate, want := range map[float64]bool{0: false, 30e6: pack.Fast(), 250e6: pack.Fast(), 1.2e9: false} {
		for _, hosts := range [][][]int{{{0, 1, 2}}, {{0, 1}, {2}}} {
			var all errgroup.Group
			for _, transport := range inproc.NewOn(hosts) {
				all.Go(func() error {
					pays, err := collective.PackingPays(t.Context(), transport, plan.Links{Across: plan.Link{BytesPerSecond: rate}})
					if err == nil && pays != (want && len(hosts) > 1) {
						err = fmt.Errorf("%v on hosts %v at %g bytes a second", pays, hosts, rate)
					}
					return errors.Join(err, transport.Close())
				})
			}
			require.NoError(t, all.Wait())
		}
	}
}

// TestPackedSaved: spans tell what did not have to be sent.
func TestPackedSaved(t *testing.T) {
	length := 200_000
	_, plain := packedCase{plan.AllReduce, device.F32, length, "", false, ""}.run(t, alone(2), collective.PackNothing)
	events := observe.NewRecorder(64)
	groups, sent := packedGroups(t, alone(2), collective.GroupConfig{Links: slow, Packed: collective.PackAcrossHosts, Events: events}, false)
	for range 2 {
		sent.Store(0)
		var all errgroup.Group
		for r, g := range groups {
			all.Go(func() error {
				return collective.Run(context.Background(), g, collective.Call{Kind: plan.AllReduce, In: gradients(uint64(r), device.F32, length, false)})
			})
		}
		require.NoError(t, all.Wait())
		saved := int64(0)
		events.Drain(func(s observe.Span) { saved += s.Saved })
		require.Equal(t, plain-sent.Load(), saved)
	}
}
