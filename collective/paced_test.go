package collective_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// slow is a link for which all-reduces are paced.
var slow = plan.Links{Across: plan.Link{BytesPerSecond: 125e6}}

// alone are n ranks on hosts of their own.
func alone(n int) [][]int {
	hosts := make([][]int, n)
	for r := range hosts {
		hosts[r] = []int{r}
	}
	return hosts
}

func pacedGroups(t *testing.T, hosts [][]int, c collective.GroupConfig) []*collective.Group {
	groups := make([]*collective.Group, len(slices.Concat(hosts...)))
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
	layouts := [][][]int{
		alone(2), alone(3), {{0, 1}, {2, 3}}, {{0, 5}, {1, 3}, {2, 4}},
		{{0, 2}, {1, 3}}, alone(4), alone(8), {{0, 1, 2, 3}, {4, 5, 6, 7}},
	}
	if testing.Short() {
		layouts = layouts[:4] // the others have no other kinds of messages
	}
	for _, hosts := range layouts {
		// Eight ranks under the race detector may share less than a processor.
		groups := pacedGroups(t, hosts, collective.GroupConfig{Links: slow, Timeout: 5 * time.Minute})
		n := len(groups)
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
						if r%2 == 1 { // a rank may work in place where others do not
							values = make([]float32, length)
							call.Out = device.FromF32(values)
						}
						if name := g.AlgorithmOf(call); name != "paced" {
							return fmt.Errorf("%v of %d elements in %d takes %s", op, length, r, name)
						}
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
								return fmt.Errorf("rank %d of hosts %v, element %d of %d, %v: %v, not %d", r, hosts, i, length, op, v, want)
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

// TestPacedTypes: of every type, all ranks get the same bits whenever they ask,
// integers those of a sum, divided towards zero. Sums of 16-bit types round once: they are folded.
func TestPacedTypes(t *testing.T) {
	t.Run("alone", func(t *testing.T) { pacedTypes(t, alone(4)) })
	t.Run("two a host", func(t *testing.T) { pacedTypes(t, [][]int{{0, 3}, {1, 2}}) })
}

func pacedTypes(t *testing.T, hosts [][]int) {
	const n = 4
	groups := pacedGroups(t, hosts, collective.GroupConfig{Links: slow})
	reduce := func(typ device.Type, op collective.Op, in [n][]byte) (out [n][]byte) {
		var all errgroup.Group
		for r, g := range groups {
			all.Go(func() error {
				out[r] = bytes.Clone(in[r])
				call := collective.Call{Kind: plan.AllReduce, Op: op, In: device.FromBytes(typ, out[r])}
				want := "paced"
				if half := typ == device.F16 || typ == device.BF16; half && op != collective.Max && op != collective.Min {
					want = "fold"
				}
				if name := g.AlgorithmOf(call); name != want {
					return fmt.Errorf("%v of %v takes %s", op, typ, name)
				}
				return collective.Run(context.Background(), g, call)
			})
		}
		require.NoError(t, all.Wait())
		return out
	}
	types := []device.Type{device.F32, device.F16, device.U8, device.F64, device.I32, device.I64, device.I8, device.BF16}
	if testing.Short() {
		types = types[:3]
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range types {
		length := 400_007 / typ.Size()
		for _, op := range []collective.Op{collective.Sum, collective.Prod, collective.Max, collective.Min, collective.Mean} {
			var in [n][]byte
			for rank := range in {
				in[rank] = make([]byte, length*typ.Size())
				for i := range length {
					switch b := device.FromBytes(typ, in[rank]); typ {
					case device.F32:
						b.F32()[i] = r.Float32() - 0.5
					case device.F64:
						b.F64()[i] = r.Float64() - 0.5
					case device.F16, device.BF16:
						b.U16()[i] = uint16(0x3c00 + r.IntN(0x300))
					default:
						in[rank][i*typ.Size()] = byte(r.IntN(5) - 2)
					}
				}
			}
			first, again := reduce(typ, op, in), reduce(typ, op, in)
			for rank := range n {
				require.True(t, bytes.Equal(first[0], first[rank]) && bytes.Equal(first[0], again[rank]), "%v of %v: rank %d", op, typ, rank)
			}
			if typ != device.I8 {
				continue
			}
			want := make([]int8, length)
			for i := range want {
				a, b, c, d := int8(in[0][i]), int8(in[1][i]), int8(in[2][i]), int8(in[3][i])
				switch op {
				case collective.Sum:
					want[i] = a + b + c + d
				case collective.Prod:
					want[i] = a * b * c * d
				case collective.Max:
					want[i] = max(a, b, c, d)
				case collective.Min:
					want[i] = min(a, b, c, d)
				case collective.Mean:
					want[i] = (a + b + c + d) / n
				}
			}
			require.True(t, slices.Equal(want, device.FromBytes(typ, first[0]).I8()), "%v of %v", op, typ)
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
		{"into another buffer", collective.GroupConfig{Links: slow}, apart, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := pacedGroups(t, alone(2), c.config)[0]
			require.Equal(t, c.paced, g.AlgorithmOf(c.call) == "paced")
		})
	}
	for _, hosts := range [][][]int{{{0, 1}}, {{0, 1}, {2}}, alone(9)} {
		g := pacedGroups(t, hosts, collective.GroupConfig{Links: slow})[0]
		require.NotEqual(t, "paced", g.AlgorithmOf(large), "hosts %v", hosts)
	}
}
