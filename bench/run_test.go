package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
)

func types() []device.Type {
	return []device.Type{device.F32, device.F16, device.BF16, device.F64, device.I32, device.I64, device.I8, device.U8}
}

// onRanks runs f on n goroutine ranks.
func onRanks(t *testing.T, n int, config collective.GroupConfig, f func(context.Context, *collective.Group) error) {
	t.Helper()
	ranks, ctx := errgroup.WithContext(t.Context())
	for _, transport := range inproc.New(n) {
		ranks.Go(func() error {
			g := collective.NewGroup(transport, config)
			err := f(ctx, g)
			if err == nil {
				err = collective.Barrier(ctx, g)
			}
			if closed := g.Close(); err == nil {
				err = closed
			}
			if closed := transport.Close(); err == nil {
				err = closed
			}
			return err
		})
	}
	require.NoError(t, ranks.Wait())
}

// run collects rank 0's results and requires the others' to be the same.
func run(t *testing.T, n int, group collective.GroupConfig, c Config) []Result {
	t.Helper()
	var mu sync.Mutex
	byRank := make([][]Result, n)
	onRanks(t, n, group, func(ctx context.Context, g *collective.Group) error {
		return Run(ctx, g, c, func(r Result) error {
			mu.Lock()
			defer mu.Unlock()
			byRank[g.Rank()] = append(byRank[g.Rank()], r)
			return nil
		})
	})
	for _, other := range byRank[1:] {
		require.Equal(t, byRank[0], other)
	}
	return byRank[0]
}

// TestEveryOperation is right for all types, on memory of both kinds, with
// sizes that are no multiples of the number of ranks.
func TestEveryOperation(t *testing.T) {
	for _, tt := range []struct {
		ranks int
		types []device.Type
		sizes []int
	}{
		{1, types(), []int{0, 8, 1000}},
		{2, types(), []int{0, 8, 1000, 20_000}},
		{3, types(), []int{0, 8, 40, 1000}},
		{11, []device.Type{device.BF16, device.U8}, []int{40, 1000}}, // more than add to one element
	} {
		for _, private := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d ranks, private %v", tt.ranks, private), func(t *testing.T) {
				results := run(t, tt.ranks, collective.GroupConfig{}, Config{
					Operations: Operations(), Types: tt.types, Sizes: tt.sizes, Private: private, Iterations: 2, Warmup: 1, Transport: "inproc"})
				require.Len(t, results, 9*len(tt.sizes)*len(tt.types)+1)
				for _, r := range results {
					require.True(t, r.Correct, "%+v", r)
					require.Equal(t, tt.ranks, r.Ranks)
					require.Equal(t, 2, r.Iterations)
					require.LessOrEqual(t, r.Best, r.P50)
				}
			})
		}
	}
}

// TestAlgorithms: those that an operation lacks are left out.
func TestAlgorithms(t *testing.T) {
	names := []string{"naive", "ring", auto}
	reduce, err := ParseOperation("reduce")
	require.NoError(t, err)
	results := run(t, 3, collective.GroupConfig{}, Config{Operations: []Operation{Operations()[0], reduce}, Sizes: []int{400}, Algorithms: names, Iterations: 1,
		Chosen: func(c collective.Call) string { return c.Algorithm + "!" }})
	want := []string{"allreduce naive!", "allreduce ring!", "allreduce auto!"}
	for _, name := range names {
		if reduce.Does(name) {
			want = append(want, "reduce "+name+"!")
		}
	}
	var got []string
	for _, r := range results {
		got = append(got, r.Op+" "+r.Algorithm)
	}
	require.Equal(t, want, got)
}

// skewed reduces float32 almost rightly: it leaves the element at the end out.
type skewed struct{ collective.Reducer }

func (s skewed) Reduce(op device.ReduceOp, dst, src device.Buf) {
	if dst.Type == device.F32 && dst.Len > 0 {
		dst, src = dst.Slice(0, dst.Len-1), src.Slice(0, src.Len-1)
	}
	s.Reducer.Reduce(op, dst, src)
}

func (s skewed) Fold(dst device.Buf, parts []device.Buf) {
	if dst.Type == device.F32 && dst.Len > 0 {
		for i := range parts {
			parts[i] = parts[i].Slice(0, parts[i].Len-1)
		}
		dst = dst.Slice(0, dst.Len-1)
	}
	s.Reducer.Fold(dst, parts)
}

// TestWrongReductionIsFound: one element too few is added somewhere.
func TestWrongReductionIsFound(t *testing.T) {
	wrong := skewed{naive.New().Kernels()}
	for _, r := range run(t, 3, collective.GroupConfig{Reducer: wrong}, Config{Operations: Operations(), Types: []device.Type{device.F32, device.I32}, Sizes: []int{4000}, Iterations: 2}) {
		o, err := ParseOperation(r.Op)
		require.NoError(t, err)
		reduces := !o.SendReceive && o.Kind.Reduces()
		require.Equal(t, !reduces || r.DType == "i32", r.Correct, "%+v", r)
	}
}

// TestAnyWrongElementIsFound: a change of one byte of a result, anywhere on the
// ranks that have one.
func TestAnyWrongElementIsFound(t *testing.T) {
	const seed, length = 5, 97
	t.Logf("seed %d", seed)
	for _, op := range Operations() {
		if !op.sized() {
			continue
		}
		onRanks(t, 3, collective.GroupConfig{}, func(ctx context.Context, g *collective.Group) error {
			for _, typ := range types() {
				memory, err := g.Alloc(ctx, typ, op.elements(op.fit(length, 3)))
				if err != nil {
					return err
				}
				tr := newTrial(g, op, memory, op.fit(length, 3), auto)
				tr.fill()
				if err := tr.run(ctx); err != nil {
					return err
				}
				if !tr.right() {
					return fmt.Errorf("%s of %v is wrong", op.Name, typ)
				}
				where := memory
				switch {
				case op.SendReceive:
				case op.Kind == plan.ReduceScatter, op.Kind == plan.Scatter:
					where = tr.own()
				case (op.Kind == plan.Reduce || op.Kind == plan.Gather) && g.Rank() != 0:
					continue
				}
				rng := rand.New(rand.NewPCG(seed, uint64(g.Rank())))
				for range 20 {
					at := rng.IntN(where.Size())
					where.Bytes()[at] ^= 1
					if tr.right() {
						return fmt.Errorf("%s of %v: a change at byte %d went unnoticed", op.Name, typ, at)
					}
					where.Bytes()[at] ^= 1
				}
			}
			return nil
		})
	}
}

// TestPattern: sums are those of the values, below 128, and every rank counts.
func TestPattern(t *testing.T) {
	for n := 1; n <= 40; n++ {
		p := pattern{n}
		counted := map[int]bool{}
		for i := range 200 {
			sum := 0
			for r := range n {
				v := p.value(r, i)
				require.True(t, v >= 0 && v <= mostValue)
				counted[r] = counted[r] || v > 0
				sum += v
			}
			require.Equal(t, sum, p.sum(i), "%d ranks, index %d", n, i)
			require.True(t, sum > 0 && sum <= mostResult)
		}
		require.Len(t, counted, n)
		require.NotContains(t, slices.Collect(func(yield func(bool) bool) {
			for r := range n {
				if !yield(counted[r]) {
					return
				}
			}
		}), false)
	}
}

func TestWaiting(t *testing.T) {
	all := run(t, 2, collective.GroupConfig{}, Config{Operations: Operations()[:1], Sizes: []int{4096}, Iterations: 3, Waiting: true})
	require.NotNil(t, all[0].Waiting)
	require.Greater(t, *all[0].Waiting, -100.0)
}

func TestLimit(t *testing.T) {
	kernels := naive.New().Kernels()
	for _, r := range run(t, 2, collective.GroupConfig{}, Config{Operations: Operations()[:2], Sizes: []int{400_000}, Iterations: 3, Limit: true, Kernels: kernels}) {
		require.Equal(t, r.Op == "allreduce", r.Limit > 0, "%+v", r)
	}
}

func TestCancelled(t *testing.T) {
	transport := inproc.New(1)[0]
	g := collective.NewGroup(transport, collective.GroupConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, Run(ctx, g, Config{Sizes: []int{8}}, func(Result) error { return nil }))
	require.NoError(t, g.Close())
	require.NoError(t, transport.Close())
}

// TestWithoutWires: what has no formats is measured also where formats are named.
func TestWithoutWires(t *testing.T) {
	seen := map[string]int{}
	for _, r := range run(t, 2, collective.GroupConfig{}, Config{Types: []device.Type{device.F32, device.F16}, Sizes: []int{4000}, Wires: []string{"int8"}, Iterations: 2, Warmup: 1,
		Operations: Operations()}) {
		seen[r.Op+" "+r.DType]++
	}
	for _, op := range Operations() {
		require.Equal(t, 1, seen[op.Name+" f32"], op.Name)
	}
	require.Equal(t, 1, seen["allreduce f16"])
}

// TestWires: each format is a measurement beside the algorithms, of all-reduces
// of F32 only.
func TestWires(t *testing.T) {
	broadcast, err := ParseOperation("broadcast")
	require.NoError(t, err)
	ofCall := func(c collective.Call) string {
		if c.Codec != nil {
			return c.Codec.Name()
		}
		return c.Algorithm
	}
	formats := []string{"f16", "int4", "topk 0.01"}
	for _, tt := range []struct{ algorithms, plain []string }{
		{nil, []string{"auto"}},
		{[]string{"ring"}, []string{"ring", "auto"}},
		{[]string{"auto", "ring"}, []string{"auto", "ring"}},
	} {
		results := run(t, 3, collective.GroupConfig{}, Config{Operations: []Operation{Operations()[0], broadcast}, Types: []device.Type{device.F32, device.F16},
			Sizes: []int{4000, 600_000}, Algorithms: tt.algorithms, Wires: []string{"f32", "f16", "int4", "topk"}, Iterations: 2, Warmup: 1, Chosen: ofCall})
		seen := map[string][]string{}
		for _, r := range results {
			require.True(t, r.Correct, "%+v", r)
			what := r.Op + " " + r.DType
			seen[what] = append(seen[what], r.Algorithm)
		}
		twice := func(names ...string) []string { return slices.Repeat(names, 2) } // for two sizes
		plain := twice(tt.plain...)
		require.Equal(t, map[string][]string{
			"allreduce f32": twice(slices.Concat(tt.plain, formats)...), "allreduce f16": plain, "broadcast f32": plain, "broadcast f16": plain,
		}, seen)
	}
}
