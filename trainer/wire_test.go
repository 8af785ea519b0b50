package trainer_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// wired trains an mlp on digits with a wire format and returns the summary, on
// which all ranks agree. stopAfter 0 runs through.
func wired(t *testing.T, dir string, ranks, stopAfter int, resume bool, set ...string) *metrics.Summary {
	t.Helper()
	set = append([]string{"model.name=mlp", "data.name=digits", "data.batch=48", "optim.name=nesterov", "optim.lr=0.05", "train.steps=6", "train.eval_every=never",
		"fusion.threshold_mb=0.05", "compute.threads=1", "checkpoint.every=never", "checkpoint.dir=" + dir}, set...)
	cfg, err := config.Load("", config.Sources{Set: set})
	require.NoError(t, err)
	out := make([]*metrics.Summary, ranks)
	var all errgroup.Group
	for _, tr := range inproc.New(ranks) {
		all.Go(func() error {
			events := observe.NewRecorder(1 << 16)
			comm := collective.NewGroup(tr, collective.GroupConfig{Name: "world", Events: events})
			stop := make(chan struct{})
			job := trainer.Job{Config: cfg, Comm: comm, Resume: resume, Stop: stop, Events: events}
			job.On = func(e trainer.Event) {
				if comm.Rank() == 0 && e.Kind == trainer.Stepped && e.Step == stopAfter-1 {
					close(stop)
				}
			}
			summary, err := trainer.Run(t.Context(), job)
			if stopAfter > 0 && errors.Is(err, trainer.ErrStopped) {
				err = nil
			}
			out[comm.Rank()] = summary
			return errors.Join(err, comm.Close(), tr.Close())
		})
	}
	require.NoError(t, all.Wait())
	for r := range out {
		require.Equal(t, out[0].StateSHA256, out[r].StateSHA256, "rank %d", r)
	}
	return out[0]
}

// With a lossy wire a run gives the same bits again for one number of ranks, also
// when it is interrupted, and another number goes on with what was kept. It sends
// fewer bytes.
func TestWires(t *testing.T) {
	plain := wired(t, "", 2, 0, false)
	for _, tt := range []struct {
		wire  string
		share float64 // of the bytes of float32, at most
	}{{"f16", 0.52}, {"bf16", 0.52}, {"int8", 0.28}, {"int4", 0.16}, {"topk", 0.4}, {"{name: powersgd, rank: 1, start: 2}", 0.5}} {
		set := "fusion.wire=" + tt.wire
		whole := wired(t, "", 2, 0, false, set)
		require.Less(t, float64(whole.BytesSent), tt.share*float64(plain.BytesSent), tt.wire)
		require.InDelta(t, *plain.LossLast, *whole.LossLast, 0.5, tt.wire)
		require.NotEqual(t, plain.ParamsSHA256, whole.ParamsSHA256)

		dir := t.TempDir()
		part := wired(t, dir, 2, 3, false, set)
		require.Equal(t, 3, part.Steps)
		require.Equal(t, whole.StateSHA256, wired(t, dir, 2, 0, true, set).StateSHA256, tt.wire)

		for _, ranks := range []int{1, 3} {
			if tt.wire == "bf16" || tt.wire == "int4" {
				continue // as f16 and int8
			}
			dir := t.TempDir()
			wired(t, dir, 2, 3, false, set)
			other := wired(t, dir, ranks, 0, true, set)
			require.InDelta(t, *plain.LossLast, *other.LossLast, 0.5, "%s on %d ranks", tt.wire, ranks)
		}
	}
}

// The loss scale, the sharded optimizer and others go with the formats.
func TestWiresWithOthers(t *testing.T) {
	for wire, more := range map[string]string{"f16": "amp.level=O2", "int8": "parallel.shard_optimizer=true", "topk": "optim.clip_norm=0.5", "powersgd": "train.micro_batch=8", "int4": "amp.level=O1"} {
		t.Run(fmt.Sprint(wire, " ", more), func(t *testing.T) {
			set := []string{"fusion.wire=" + wire, more}
			whole := wired(t, "", 2, 0, false, set...)
			dir := t.TempDir()
			wired(t, dir, 2, 3, false, set...)
			require.Equal(t, whole.StateSHA256, wired(t, dir, 2, 0, true, set...).StateSHA256)
		})
	}
}

// TestWireGrid draws combinations with a wire: interrupted, each gives the bits
// that it gives without; under train.deterministic: world it is refused by name.
func TestWireGrid(t *testing.T) {
	r, seed := source(1)
	size := max(*gridSize/2, 1)
	if testing.Short() {
		size = min(size, 1)
	}
	wires := []string{"f16", "bf16", "int8", "int4", "topk", "{name: topk, start: 3}", "{name: powersgd, rank: 1, start: 2}"}
	for i := range size {
		c := draw(r)
		if c.wire = wires[r.IntN(len(wires))]; c.wire != "f16" && c.wire != "bf16" { // what is kept cannot be saved of a model that is cut
			c.tensor, c.sparse = 1, "none"
			c.layout = layout{ranks: 1 + r.IntN(4), pipeline: 1}
		}
		c.then, c.stopAfter = c.layout, 1+r.IntN(gridSteps-1)
		t.Logf("seed %d, combination %d: %+v", seed, i, c)
		whole := c
		whole.stopAfter = 0
		require.Equal(t, whole.run(t).StateSHA256, c.run(t).StateSHA256)
		_, err := config.Load("", config.Sources{Set: []string{"train.deterministic=world", "fusion.wire=" + c.wire}})
		require.ErrorContains(t, err, "refused under train.deterministic: world")
	}
}
