package trainer_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

var update = flag.Bool("update", false, "rewrite the golden texts")

// Under deterministic: world all figures are counted, so they are the same
// everywhere.
func TestDryRunIsGolden(t *testing.T) {
	var text bytes.Buffer
	for _, c := range []struct {
		world int
		set   []string
	}{
		{4, []string{"model.name=resnet20", "parallel.pipeline=2", "train.micro_batch=8", "optim.name=adam"}},
		{4, []string{"model.name=cnn", "parallel.pipeline=4", "train.micro_batch=16"}},
		{2, []string{"model.name=mlp"}},
		{8, []string{"model.name=gpt", "data.name=synthetic-text", "parallel.pipeline=2", "parallel.tensor=2", "train.micro_batch=8", "optim.name=adamw"}},
		{1, []string{"model.name=mlp", "optim.name=sgd"}},
		{2, []string{"model.name=resnet20", "parallel.pipeline=2", "parallel.schedule=zb-v", "parallel.cuts=[layer1.1, 4, layer3.0]", "train.micro_batch=16"}},
	} {
		cfg, err := config.Load("", config.Sources{Set: append([]string{"data.name=digits", "data.batch=64", "train.deterministic=world", "parallel.dry_run=true"}, c.set...)})
		require.NoError(t, err)
		require.NoError(t, trainer.Fits(cfg, c.world))
		require.NoError(t, trainer.DryRun(trainer.Job{Config: cfg, Device: naive.New()}, c.world, &text))
		text.WriteString("\n")
	}
	path := filepath.Join("testdata", "dryrun.txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, text.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String())
}

// Without it they are measured.
func TestDryRunMeasures(t *testing.T) {
	cfg, err := config.Load("", config.Sources{Set: []string{"data.name=digits", "data.batch=16", "model.name=mlp", "model.hidden=[8, 8]", "parallel.pipeline=2", "train.micro_batch=4"}})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, trainer.DryRun(trainer.Job{Config: cfg, Device: naive.New()}, 2, &text))
	require.Contains(t, text.String(), "times of a micro-batch are measured on this host")
}

// Bytes are those of the wires, and each rank has a share of the optimizer only.
func TestDryRunCountsWires(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want string
	}{
		{nil, "113 KiB, of which each rank sends 113 KiB (wire f32)"},
		{[]string{"fusion.wire=f16"}, "of which each rank sends 56.3 KiB (wire f16)"},
		{[]string{"fusion.wire=int8"}, "of which each rank sends 28.6 KiB (wire int8)"},
		{[]string{"fusion.wire=powersgd"}, "of which each rank sends less than 113 KiB (wire powersgd)"},
		{[]string{"optim.name=adam", "parallel.shard_optimizer=false"}, "450 KiB"},
		{[]string{"optim.name=adam", "collective.transport=tcp"}, "450 KiB"},
		{[]string{"optim.name=adam", "collective.transport=tcp", "parallel.shard_optimizer=true"}, "338 KiB"},
		{[]string{"optim.name=adam"}, "450 KiB"}, // too small to be worth it
		{[]string{"optim.name=adam", "model.hidden=[16384]"}, "14.1 MiB"},
		{[]string{"amp.level=O2", "parallel.pipeline=2"}, "(f16)"},
		{[]string{"parallel.activation_wire=bf16", "parallel.pipeline=2"}, "(bf16)"},
	} {
		cfg, err := config.Load("", config.Sources{Set: append([]string{"data.name=digits", "data.batch=16", "model.name=mlp", "model.hidden=[384]", "train.micro_batch=4"}, c.set...)})
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, trainer.DryRun(trainer.Job{Config: cfg, Device: naive.New()}, 2*cfg.Parallel.Pipeline, &text))
		require.Contains(t, text.String(), c.want)
	}
}

func TestFitsNamesTheSetting(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	const head = "block,forward,backward,parameter_bytes,activation_bytes,output_bytes\n"
	for _, c := range []struct {
		set  []string
		want string
	}{
		{[]string{"parallel.pipeline=4"}, "parallel.pipeline: 4 stages cannot be made of 3 blocks: each has at least one\n0:fc1 1:fc2 2:head"},
		{[]string{"parallel.cuts=[3]"}, "parallel.cuts: cut 1 is before block 3, but the model has the blocks 0 to 2\n0:fc1 1:fc2 2:head |"},
		{[]string{"parallel.cuts=[fc1]"}, "parallel.cuts: cut 1 is before block 0, which leaves stage 0 without a block"},
		{[]string{"parallel.cuts=[fc7]"}, "parallel.cuts: there is no block \"fc7\"; the model has\n0:fc1 1:fc2 2:head"},
		{[]string{"parallel.cuts=" + file("few.csv", head+"fc1,1,2,3,4,5\n")}, "few.csv has 1 block, the model has 3"},
		{[]string{"parallel.cuts=" + file("other.csv", head+"fc1,1,2,3,4,5\nfc2,1,2,3,4,5\nfc3,1,2,3,4,5\n")}, "other.csv has fc3 for block 2, which is head"},
		{[]string{"parallel.cuts=" + file("bad.csv", head+"fc1,1,2,3,4,x\n")}, "line 2, column 13"},
		{[]string{"parallel.cuts=nowhere.csv"}, "parallel.cuts: the file cannot be read"},
		{[]string{"parallel.schedule=" + file("double.csv", "0F0,0B0\n1F0,1B0,1B0\n")}, "rank 1, action 2: 1B0 stands at rank 1, action 1 already\n         0   1   2\nrank 0   0F0 0B0\nrank 1   1F0 1B0 1B0\n                 ^"},
		{[]string{"parallel.schedule=" + file("missing.csv", "0F0,0B0\n1F0\n")}, "rank 1, action 1: 1B0 is missing"},
		{[]string{"parallel.schedule=" + file("typo.csv", "0F0,0B0\n1F0,1C0\n")}, "line 2, column 5: \"1C0\" is no action"},
		{[]string{"parallel.schedule=" + file("empty.csv", "\n")}, "empty.csv holds no actions"},
		{[]string{"parallel.schedule=" + file("short.csv", "0F0,0B0\n1F0,1B0\n")}, "runs 1 micro-batch, and a step has 2 here"},
		{[]string{"parallel.schedule=" + file("one.csv", "0F0,0B0,0F1,0B1,0F2,0B2,0F3,0B3\n")}, "has 1 rank, parallel.pipeline is 2"},
	} {
		set := append([]string{"data.name=digits", "data.batch=16", "model.name=mlp", "parallel.pipeline=2", "train.micro_batch=4"}, c.set...)
		cfg, err := config.Load("", config.Sources{Set: set})
		require.NoError(t, err)
		err = trainer.Fits(cfg, 4)
		require.ErrorAs(t, err, new(*config.Error), c.want)
		require.ErrorContains(t, err, c.want)
	}
}
