package parallel

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// stepped runs steps of a training on demand, on all ranks at once.
type stepped struct {
	steps  []chan int // how many, by rank
	done   chan error
	ended  sync.WaitGroup
	memory []int // Activations, by rank
}

// startSteps begins a training whose ranks have one compute thread each.
func (p pipelined) startSteps(ctx context.Context) *stepped {
	n := p.ranks * p.columns
	s := &stepped{done: make(chan error, n), memory: make([]int, n)}
	for range n {
		s.steps = append(s.steps, make(chan int))
	}
	s.ended.Go(func() {
		err := world(ctx, n, func(ctx context.Context, c collective.Comm) error {
			e, g, closer, err := p.onCPU(ctx, c)
			if err != nil {
				s.done <- err
				return err
			}
			for count := range s.steps[c.Rank()] {
				for range count {
					if err := errors.Join(e.Step(ctx, p.samples, p.micro), g.Step(0.01)); err != nil {
						s.done <- err
						return err
					}
				}
				s.memory[c.Rank()] = e.Activations()
				s.done <- nil
			}
			return closer()
		})
		if err != nil {
			s.done <- err
		}
	})
	return s
}

func (p pipelined) onCPU(ctx context.Context, c collective.Comm) (*Executor, *GradFusion, func() error, error) {
	dev, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		return nil, nil, nil, err
	}
	m, err := NewMesh(ctx, c, MeshConfig{Pipeline: p.ranks})
	if err != nil {
		return nil, nil, nil, err
	}
	one, err := p.schedule(1)
	if err != nil {
		return nil, nil, nil, err
	}
	stages, err := p.stagesOf(ctx, m, dev, one.Owners())
	if err != nil {
		return nil, nil, nil, err
	}
	opt, err := optim.New(optim.Config{Name: "adamw"})
	if err != nil {
		return nil, nil, nil, err
	}
	cfg := p.fusion
	cfg.Device, cfg.World = dev, c
	g, err := NewGradFusion(ctx, stages, opt, cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: p.loss, Pipe: m.Column, Schedule: p.schedule,
		Feed: func(_ context.Context, m Micro) (Batch, error) { return p.batch(m), nil }})
	return e, g, func() error { return errors.Join(g.Close(), m.Close(), dev.Close()) }, nil
}

func (s *stepped) run(tb testing.TB, count int) time.Duration {
	start := time.Now()
	for _, c := range s.steps {
		c <- count
	}
	for range s.steps {
		require.NoError(tb, <-s.done)
	}
	return time.Since(start)
}

func (s *stepped) close() {
	for _, c := range s.steps {
		close(c)
	}
	s.ended.Wait()
}

// benchGPT is a GPT whose blocks take most of the time, so that it can be cut in
// equal stages.
func benchGPT() pipelined {
	const context, vocabulary = 64, 96
	p := texts(models.Config{Name: "gpt", Vocabulary: vocabulary, Context: context, Layers: 4, Heads: 4, Features: 128}, 32)
	tokens := make([]int32, 32*context+1)
	for i := range tokens {
		tokens[i] = int32(i * i % vocabulary)
	}
	p.batch = func(m Micro) Batch {
		lo, hi := m.Lo*context, m.Hi*context
		return Batch{Input: device.FromI32(tokens[lo:hi]), Shape: nn.Plain(m.Samples, context), Target: device.FromI32(tokens[lo+1 : hi+1])}
	}
	p.fusion.Targets, p.micro = context, 4
	return p
}

// BenchmarkPipeline compares one process with two stages on two ranks, eight
// micro-batches, in turns: the ratio of the best times, and of the memory.
func BenchmarkPipeline(b *testing.B) {
	for _, name := range schedule.Names() {
		b.Run(name, func(b *testing.B) {
			one, two := benchGPT(), benchGPT()
			two.name, two.ranks, two.virtual = name, 2, 2
			whole := benchGPT()
			whole.micro = whole.samples
			single, cut, all := one.startSteps(b.Context()), two.startSteps(b.Context()), whole.startSteps(b.Context())
			defer single.close()
			defer cut.close()
			defer all.close()
			for _, s := range []*stepped{single, cut, all} {
				s.run(b, 2)
			}
			best, work := [2]time.Duration{time.Hour, time.Hour}, [2]time.Duration{time.Hour, time.Hour}
			for b.Loop() {
				for i, s := range []*stepped{single, cut} {
					before := processorTime()
					best[i] = min(best[i], s.run(b, 1))
					work[i] = min(work[i], processorTime()-before)
				}
			}
			b.ReportMetric(float64(work[1])/float64(work[0]), "work")
			b.ReportMetric(float64(best[0])/float64(best[1]), "times-as-fast")
			b.ReportMetric(float64(best[0].Microseconds()), "single-us")
			b.ReportMetric(float64(best[1].Microseconds()), "cut-us")
			b.ReportMetric(float64(slices.Max(cut.memory))/float64(all.memory[0]), "memory-share")
			s, err := schedule.New(name, 2, 2, 8)
			require.NoError(b, err)
			timing, err := s.Simulate(schedule.Costs{})
			require.NoError(b, err)
			busy := timing.Ranks[0].Busy + timing.Ranks[1].Busy
			b.ReportMetric(busy/timing.Span, "limit")
		})
	}
}

// processorTime is what this process has computed.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSteadyPipelineAllocates holds the bound of a step per rank.
func TestSteadyPipelineAllocates(t *testing.T) {
	p := smallModels()["gpt"](16)
	p.name, p.ranks, p.micro = "1f1b", 2, 2
	s := p.startSteps(t.Context())
	defer s.close()
	s.run(t, 5)
	const steps = 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.run(t, steps)
	runtime.ReadMemStats(&after)
	objects := float64(after.Mallocs-before.Mallocs) / steps / float64(p.ranks)
	t.Logf("%.0f objects a step and rank", objects)
	require.Less(t, objects, 100.0)
}
