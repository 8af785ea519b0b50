package metrics

import (
	"testing"

	"github.com/gradfusion/gradfusion/observe"
	"github.com/stretchr/testify/require"
)

const ms = 1_000_000

func span(kind observe.Kind, start, end int64) observe.Span {
	return observe.Span{Kind: kind, Lane: "compute", Start: start * ms, End: end * ms}
}

func call(start, end, sent, received int64) observe.Span {
	s := span(observe.Call, start, end)
	s.Bytes, s.BytesIn, s.Saved = sent, received, sent/15
	return s
}

// step is a scripted step of 100 ms that starts at t.
func step(t int64) []observe.Span {
	return []observe.Span{
		span(observe.Forward, t+12, t+20), // a block inside
		span(observe.Forward, t+10, t+30), // the micro-batch around it
		span(observe.Data, t+0, t+10),
		span(observe.Backward, t+30, t+50),
		span(observe.Backward, t+50, t+65),
		span(observe.CallWait, t+40, t+45),
		call(t+45, t+70, 100, 50), // two communicators side by side: both count
		call(t+60, t+80, 10, 5),
		span(observe.Exposed, t+65, t+75), // overlapping: 65 to 80 counts once
		span(observe.Exposed, t+70, t+80),
		span(observe.Exposed, t+66, t+68),
		span(observe.Bubble, t+0, t+5),
		span(observe.Bubble, t+3, t+8),
		span(observe.Bucket, t+40, t+80), // no part of the figures
		span(observe.Evaluate, t+0, t+99),
		span(observe.Optimizer, t+80, t+95),
		span(observe.Step, t+0, t+100),
	}
}

var stepTimes = Times{Step: 100, Forward: 20, Backward: 35, Optimizer: 15, Comm: 45, Exposed: 15, Bubble: 8, Wait: 5, Data: 10}

func TestScriptedStep(t *testing.T) {
	var s StepTimes
	for i := range 3 {
		for _, v := range step(int64(1000 * i)) {
			s.Add(v)
		}
		require.Equal(t, stepTimes, s.EndStep())
	}
	require.Equal(t, stepTimes, s.Means())
	require.Equal(t, 70.0, *s.Overlap()) // 100 x (1 - 15 / (45 + 5))
	sent, received := s.Bytes()
	require.Equal(t, []int64{330, 165}, []int64{sent, received})
	require.Equal(t, 3, s.Steps())
}

func TestWarmupIsLeftOutOfMeans(t *testing.T) {
	s := StepTimes{Warmup: 2}
	durations := []int64{900, 500, 10, 30, 20, 40}
	var at int64
	for _, d := range durations {
		s.Add(span(observe.Step, at, at+d))
		s.Add(span(observe.Forward, at, at+d/2))
		s.EndStep()
		at += d
	}
	require.Equal(t, Times{Step: 25, Forward: 12.5}, s.Means())
	require.Equal(t, 20.0, s.StepPercentile(50))
	require.Equal(t, 40.0, s.StepPercentile(95))
	require.Equal(t, 10.0, s.StepPercentile(0))

	short := StepTimes{Warmup: 2}
	short.Add(span(observe.Step, 0, 900))
	short.EndStep()
	short.Add(span(observe.Step, 0, 500))
	short.EndStep()
	require.Equal(t, 700.0, short.Means().Step, "a run that is all warm-up counts whole")
	require.Equal(t, 500.0, short.StepPercentile(50))
}

func TestPercentilesAreNearestRanks(t *testing.T) {
	var s StepTimes
	for i := range 100 {
		s.Add(span(observe.Step, 0, int64(100-i)))
		s.EndStep()
	}
	require.Equal(t, 50.0, s.StepPercentile(50))
	require.Equal(t, 95.0, s.StepPercentile(95))
	require.Equal(t, 100.0, s.StepPercentile(100))
}

func TestOverlapIsNullWhereNothingWasSent(t *testing.T) {
	var s StepTimes
	require.Nil(t, s.Overlap())
	require.Zero(t, s.Means())
	require.Zero(t, s.StepPercentile(50))
	s.Add(call(0, 10, 0, 0)) // a group of one rank
	s.Add(span(observe.Exposed, 0, 5))
	s.EndStep()
	require.Nil(t, s.Overlap())

	var slow StepTimes
	slow.Add(call(0, 10, 8, 8))
	slow.Add(span(observe.Exposed, 0, 15))
	slow.EndStep()
	require.Equal(t, -50.0, *slow.Overlap())
}

func TestUnion(t *testing.T) {
	for _, c := range []struct {
		list []interval
		want float64
	}{
		{nil, 0},
		{[]interval{{0, 5}}, 5},
		{[]interval{{0, 5}, {5, 7}}, 7},
		{[]interval{{3, 5}, {0, 1}}, 3},
		{[]interval{{0, 10}, {2, 3}, {9, 12}, {20, 20}}, 12},
		{[]interval{{-5, -2}, {-3, 0}}, 5},
	} {
		for i := range c.list {
			c.list[i].start *= ms
			c.list[i].end *= ms
		}
		require.Equal(t, c.want, union(c.list))
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	s := StepTimes{steps: make([]float64, 0, 1000)}
	spans := step(0)
	one := func() {
		for _, v := range spans {
			s.Add(v)
		}
		s.EndStep()
	}
	one()
	require.Zero(t, testing.AllocsPerRun(100, one))
}
