//go:build linux && (amd64 || arm64)

package shm

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
)

var benchRanks = flag.Int("shm.ranks", 2, "ranks of BenchmarkProcesses")
var benchWhat = flag.String("shm.calls", "all-reduce/registered/f32 all-reduce/private/f32", "calls of BenchmarkProcesses")

// BenchmarkProcesses times calls of ranks that are processes: the slowest rank's
// median and best. Calls above 128 KiB follow a barrier each.
//
//	go test -run - -bench Processes -shm.ranks 4 -shm.calls all-gather/registered/f32 ./collective/shm
func BenchmarkProcesses(b *testing.B) {
	children := start(b, "bench", *benchRanks)
	for _, what := range strings.Fields(*benchWhat) {
		for _, size := range []int{1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", what, size>>10), func(b *testing.B) {
				for _, c := range children {
					_, err := fmt.Fprintln(c.in, what, size)
					require.NoError(b, err)
				}
				var median, best float64
				for _, c := range children {
					var m, l float64
					_, err := fmt.Sscan(c.line(b), &m, &l)
					require.NoError(b, err)
					median, best = max(median, m), max(best, l)
				}
				b.ReportMetric(median, "us/median")
				b.ReportMetric(best, "us/best")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// benchRole times what the parent asks for.
func benchRole(ctx context.Context, g *collective.Group, _ *Transport, in *bufio.Reader) error {
	dev, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		return err
	}
	defer dev.Close()
	buffers := map[string]device.Buf{}
	for {
		var what string
		var size int
		if _, err := fmt.Fscanln(in, &what, &size); err != nil {
			return nil // the parent has had enough
		}
		parts := strings.Split(what, "/")
		typ, err := device.ParseType(parts[2])
		if err != nil {
			return err
		}
		c, err := benchCall(ctx, g, parts[0], parts[1] == "registered", typ, size/typ.Size(), buffers)
		if err != nil {
			return err
		}
		reps := 20000
		switch {
		case size > 32<<20:
			reps = 12
		case size > 2<<20:
			reps = 30
		case size > 128<<10:
			reps = 200
		}
		// A rank that computes gets a processor of its own before long; one that
		// has just been woken by the parent may share it with another.
		for begin := time.Now(); time.Since(begin) < 30*time.Millisecond; {
			clear(c.In.Bytes()[:min(c.In.Size(), 4096)])
		}
		var times []time.Duration
		for i := range reps + 3 {
			if size > 128<<10 {
				if err := collective.Barrier(ctx, g); err != nil {
					return err
				}
			}
			begin := time.Now()
			if err := blocking(ctx, g, c); err != nil {
				return err
			}
			if i >= 3 {
				times = append(times, time.Since(begin))
			}
		}
		slices.Sort(times)
		us := func(d time.Duration) string { return strconv.FormatFloat(float64(d.Nanoseconds())/1e3, 'f', 2, 64) }
		fmt.Fprintln(os.Stdout, us(times[len(times)/2]), us(times[0]))
	}
}

// blocking runs a call by the function that waits for it.
func blocking(ctx context.Context, g *collective.Group, c collective.Call) error {
	switch c.Kind {
	case plan.AllReduce:
		return collective.AllReduce(ctx, g, c.Op, c.In)
	case plan.AllGather:
		return collective.AllGather(ctx, g, c.Out, c.In)
	case plan.ReduceScatter:
		return collective.ReduceScatter(ctx, g, c.Op, c.Out, c.In)
	}
	return collective.Broadcast(ctx, g, 0, c.In)
}

func benchCall(ctx context.Context, g *collective.Group, name string, registered bool, typ device.Type, n int, buffers map[string]device.Buf) (collective.Call, error) {
	kind, err := plan.ParseKind(name)
	if err != nil {
		return collective.Call{}, err
	}
	buf := func(name string, n int) device.Buf {
		key := fmt.Sprint(name, registered, typ, n)
		b, ok := buffers[key]
		if !ok {
			if registered {
				b, err = g.Alloc(ctx, typ, n)
			} else {
				b, err = device.HostAlloc(typ, n)
			}
			clear(b.Bytes()) // zeros stay zeros, whatever the number of calls
			buffers[key] = b
		}
		return b
	}
	c := collective.Call{Kind: kind, Op: collective.Sum}
	own := plan.Cut(n, g.Size())[g.Rank()+1] - plan.Cut(n, g.Size())[g.Rank()]
	switch kind {
	case plan.AllGather:
		c.Out, c.In = buf("whole", n), buf("part", own)
	case plan.ReduceScatter:
		c.In, c.Out = buf("whole", n), buf("part", own)
	default:
		c.In = buf("whole", n)
	}
	return c, err
}
