package trainer_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/trainer"
)

// event is one span of a trace.
type event struct {
	Name, Ph, Cat string
	PID           int
	TS, Dur       float64 // microseconds
	Args          struct{ Step int }
}

// bounds are the nanoseconds in which the span lies, which three decimals hold.
func (e event) bounds() (start, end int64) {
	return int64(math.Round(e.TS * 1000)), int64(math.Round((e.TS + e.Dur) * 1000))
}

func TestSpansOfATraceLieInTheirSteps(t *testing.T) {
	dir := t.TempDir()
	_, err := ranks(t, 2, trainer.Job{Config: small(t, "observe.trace=true", "fusion.first_mb=0.001", "train.steps=4"), RunDir: dir})
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(dir, "trace.json"))
	require.NoError(t, err)
	var trace struct{ TraceEvents []event }
	require.NoError(t, json.Unmarshal(raw, &trace))

	steps, seen := map[string]event{}, map[string]int{}
	place := func(e event) string { return fmt.Sprintf("step %d of rank %d", e.Args.Step, e.PID) }
	for _, e := range trace.TraceEvents {
		if e.Cat == "step" {
			steps[place(e)] = e
		}
	}
	require.Len(t, steps, 4*2)
	for _, e := range trace.TraceEvents {
		if e.Ph != "X" || e.Args.Step == 0 { // before the first step and after the last one
			continue
		}
		seen[e.Cat]++
		require.Contains(t, steps, place(e))
		first, last := steps[place(e)].bounds()
		start, end := e.bounds()
		if e.Cat != "checkpoint" && e.Cat != "evaluate" {
			require.True(t, first <= start && end <= last, "%s %s lies outside of %s", e.Cat, e.Name, place(e))
		}
	}
	for _, kind := range []string{"data", "forward", "backward", "optimizer"} {
		require.GreaterOrEqual(t, seen[kind], 4*2, kind)
	}
	require.GreaterOrEqual(t, seen["call"], 4*2*2, "a bucket and the losses of each step and rank")
}
