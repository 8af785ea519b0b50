package commtest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// Place returns the connected transports of a fresh world whose ranks are on these
// hosts, rank r at index r. It fails tb when it cannot.
type Place func(tb testing.TB, hosts [][]int) []collective.Transport

// Paced compares paced all-reduces on several hosts with the plan's simulation to the
// bit: of all types and reductions, in place and out of place, also where the group
// takes them by itself, which it does unless all ranks share memory. Sums of 16-bit
// types go another way, for which they are rounded once.
func Paced(t *testing.T, place Place) {
	layouts := [][][]int{
		{{0, 2}, {1, 3}}, {{0, 3}, {1, 4}, {2, 5}}, {{0, 1, 2}, {3}},
		{{0, 1}, {2, 3}}, {{0, 1}, {2, 3}, {4, 5}}, {{0, 1, 2}, {3, 4, 5}}, {{0, 2, 4}, {1, 3, 5}}, {{0, 3}, {1}, {2, 4, 5, 6}},
	}
	if testing.Short() {
		layouts = layouts[:3]
	}
	for _, hosts := range layouts {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			n := 0
			for _, host := range hosts {
				n += len(host)
			}
			calls := pacedCalls(n, hosts)
			connect := func(tb testing.TB, _ int) []collective.Transport { return place(tb, hosts) }
			config := collective.GroupConfig{Links: plan.Links{Across: plan.Link{BytesPerSecond: 100e6}}, Timeout: stepPatience}
			groups(t, connect, n, config, func(ctx context.Context, g *collective.Group) error {
				for i := range calls {
					if err := calls[i].run(ctx, g); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// pacedCall is an all-reduce with the input of each rank and the result of all.
type pacedCall struct {
	op     collective.Op
	typ    device.Type
	inputs [][]byte
	want   []byte
	takes  string // the algorithm that the group names
	named  bool   // by the call; else the group takes it by itself
}

func (p *pacedCall) String() string {
	return fmt.Sprintf("all-reduce %v of %d %v, named %v", p.op, len(p.want)/p.typ.Size(), p.typ, p.named)
}

func pacedCalls(n int, hosts [][]int) (calls []pacedCall) {
	equal := true
	for _, host := range hosts {
		equal = equal && len(host) == len(hosts[0])
	}
	for _, typ := range types() {
		for _, op := range ops(plan.AllReduce) {
			long := 400_007 / typ.Size() // two pieces of six ranks
			if testing.Short() && op != collective.Sum || typ == device.U8 {
				long /= 8
			}
			lengths := []int{n + 1, long}
			if typ == device.F32 && op == collective.Sum {
				lengths = append(awkward(n), long)
				if !testing.Short() {
					lengths = append(lengths, longLength)
				}
			}
			for _, length := range lengths {
				p := newPacedCall(op, typ, n, length, hosts)
				p.named = true
				calls = append(calls, p)
				if equal && len(p.want) >= 256<<10 {
					p.named = false
					calls = append(calls, p)
				}
			}
		}
	}
	return calls
}

func newPacedCall(op collective.Op, typ device.Type, n, length int, hosts [][]int) pacedCall {
	p := pacedCall{op: op, typ: typ, takes: "paced"}
	r := rand.New(rand.NewPCG(uint64(n), uint64(length)))
	var vectors [][]byte
	for range n {
		v := empty(typ, length)
		for i := range length {
			switch typ {
			case device.F32:
				v.F32()[i] = r.Float32() - 0.5
			case device.F64:
				v.F64()[i] = r.Float64() - 0.5
			case device.F16: // 1 to 1.75, as the next
				v.U16()[i] = uint16(0x3c00 + r.IntN(0x300))
			case device.BF16:
				v.U16()[i] = uint16(0x3f80 + r.IntN(0x60))
			default:
				v.Bytes()[i*typ.Size()] = byte(r.IntN(256)) // sums of bytes overflow alike in any order
			}
		}
		p.inputs = append(p.inputs, v.Bytes())
		vectors = append(vectors, bytes.Clone(v.Bytes()))
	}
	if half := typ == device.F16 || typ == device.BF16; half && op != collective.Max && op != collective.Min {
		p.takes, p.want = "fold", roundedOnce(op, typ, vectors)
		return p
	}
	p.want = simulatePaced(op, typ, vectors, hosts)
	return p
}

// simulatePaced runs the plan on bytes.
func simulatePaced(op collective.Op, typ device.Type, vectors [][]byte, hosts [][]int) []byte {
	a, err := plan.Lookup("paced")
	if err != nil {
		panic(err)
	}
	n, size := len(vectors), typ.Size()
	whole := a.For(plan.AllReduce, plan.World{Ranks: n, Hosts: hosts}, 0, len(vectors[0]))
	bounds := plan.Cut(len(vectors[0])/size, whole.Chunks)
	cuts := make([][]int, n)
	for i := range bounds {
		bounds[i] *= size
	}
	for r := range cuts {
		cuts[r] = bounds
	}
	if err := plan.Simulate(whole, vectors, cuts, func(dst, src []byte) { combineBytes(op, typ, dst, src) }); err != nil {
		panic(err)
	}
	if op == collective.Mean {
		collective.Divide(device.FromBytes(typ, vectors[0]), n)
	}
	return vectors[0]
}

// combineBytes is a plain loop for each type. Positive 16-bit floats are ordered as
// their bits are.
func combineBytes(op collective.Op, typ device.Type, dst, src []byte) {
	to, from := device.FromBytes(typ, dst), device.FromBytes(typ, bytes.Clone(src))
	switch typ {
	case device.F32:
		combineAll(op, to.F32(), from.F32())
	case device.F64:
		combineAll(op, to.F64(), from.F64())
	case device.I32:
		combineAll(op, to.I32(), from.I32())
	case device.I64:
		combineAll(op, to.I64(), from.I64())
	case device.I8:
		combineAll(op, to.I8(), from.I8())
	case device.U8:
		combineAll(op, to.Bytes(), from.Bytes())
	default:
		combineAll(op, to.U16(), from.U16())
	}
}

func combineAll[T float32 | float64 | int32 | int64 | int8 | uint8 | uint16](op collective.Op, dst, src []T) {
	for i, x := range src {
		switch op {
		case collective.Prod:
			dst[i] *= x
		case collective.Max:
			dst[i] = max(dst[i], x)
		case collective.Min:
			dst[i] = min(dst[i], x)
		default:
			dst[i] += x
		}
	}
}

// roundedOnce combines 16-bit floats from 1 to 1.75 in float32, in rank order, and
// rounds to the nearest one then, ties to even: all results are normal numbers.
func roundedOnce(op collective.Op, typ device.Type, vectors [][]byte) []byte {
	digits, bias := 10, 15
	if typ == device.BF16 {
		digits, bias = 7, 127
	}
	out := empty(typ, len(vectors[0])/2)
	for i := range out.U16() {
		sum := float32(0)
		for r, v := range vectors {
			bits := int(device.FromBytes(typ, v).U16()[i])
			x := float32(math.Ldexp(float64(bits&(1<<digits-1)|1<<digits), bits>>digits-bias-digits))
			switch {
			case r == 0:
				sum = x
			case op == collective.Prod:
				sum *= x
			default:
				sum += x
			}
		}
		if op == collective.Mean {
			sum /= float32(len(vectors))
		}
		exponent := math.Ilogb(float64(sum))
		mantissa := int(math.RoundToEven(math.Ldexp(float64(sum), digits-exponent))) // from 2^digits to twice that
		out.U16()[i] = uint16((exponent+bias)<<digits + mantissa - 1<<digits)
	}
	return out.Bytes()
}

// run carries out the call on a rank, and compares. Odd ranks work out of place.
func (p *pacedCall) run(ctx context.Context, g *collective.Group) error {
	own := bytes.Clone(p.inputs[g.Rank()])
	c := collective.Call{Kind: plan.AllReduce, Op: p.op, In: device.FromBytes(p.typ, own), Label: p.String()}
	result := own
	if g.Rank()%2 == 1 && len(own) > 0 {
		result = make([]byte, len(own))
		c.Out = device.FromBytes(p.typ, result)
	}
	if p.named {
		c.Algorithm = "paced"
	} else if g.SharesMemory() {
		return nil // what links do is no matter
	}
	if takes := g.AlgorithmOf(c); takes != p.takes {
		return fmt.Errorf("%v takes %s, not %s", p, takes, p.takes)
	}
	if err := g.Start(ctx, c).Wait(ctx); err != nil {
		return fmt.Errorf("%v: %w", p, err)
	}
	if !bytes.Equal(result, p.want) {
		return fmt.Errorf("%v on rank %d differs from the simulation", p, g.Rank())
	}
	if c.Out.Len > 0 && !bytes.Equal(own, p.inputs[g.Rank()]) {
		return fmt.Errorf("%v on rank %d: the input was changed", p, g.Rank())
	}
	return nil
}

// testPaced places the ranks of one host on several.
func testPaced(t *testing.T, connect Connect) {
	Paced(t, func(tb testing.TB, hosts [][]int) []collective.Transport {
		n := 0
		for _, host := range hosts {
			n += len(host)
		}
		ranks := connect(tb, n)
		for r := range ranks {
			ranks[r] = rehosted{ranks[r], hosts}
		}
		return ranks
	})
}
