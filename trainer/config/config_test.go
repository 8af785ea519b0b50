package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/internal/spelling"
)

// plainly drops what only a loaded configuration has.
func plainly(c *Config) Config {
	out := *c
	out.file, out.positions, out.files = "", nil, 0
	return out
}

func TestDefaultSurvivesYAML(t *testing.T) {
	text := Default().YAML()
	got, err := Read("default", text)
	require.NoError(t, err, "%s", text)
	require.Equal(t, plainly(Default()), plainly(got))
}

func TestValuesSurviveYAML(t *testing.T) {
	want, err := Read("test", []byte(`
model: {name: mlp, hidden: [64, 32]}
data: {name: synthetic, height: 8, width: 8, batch: 96, augment: "crop-flip:2"}
optim: {name: adamw, lr: 1e-3, beta2: 0.95, clip_norm: 1.5, schedule: {name: multistep, milestones: [0.5, 100]}}
train: {steps: 20, seed: 18446744073709551615, micro_batch: 16, eval_every: 90s, deterministic: world}
fusion: {threshold_mb: 0.01, overlap: false}
collective: {timeout: 1m30s, transport: inproc}
launch: {nproc: 3}
checkpoint: {dir: "a dir: #1 \"ü\"", every: 7 steps}
observe: {run_dir: "", trace: true}
`))
	require.NoError(t, err)
	got, err := Read("again", want.YAML())
	require.NoError(t, err, "%s", want.YAML())
	require.Equal(t, plainly(want), plainly(got))
	require.Equal(t, want.YAML(), got.YAML())
	require.Equal(t, []int{64, 32}, got.Model.Hidden)
	require.Equal(t, 3, got.Data.Channels, "made-up images have their own defaults")
	require.Equal(t, Every{Time: 90 * time.Second}, got.Train.EvalEvery)
	require.Equal(t, Every{Steps: 7}, got.Checkpoint.Every)
	require.Equal(t, `a dir: #1 "ü"`, got.Checkpoint.Dir)
}

// TestOrder: defaults, file, environment, -set; included files before their
// includer; a position for each.
func TestOrder(t *testing.T) {
	c, err := load(t, `include: half.yaml
optim:
  lr: 0.2
  weight_decay: 0.1
env: GRADFUSION_SET_OPTIM_WEIGHT_DECAY=0.01
env: GRADFUSION_SET_TRAIN_EVAL_EVERY=20 steps
env: OTHER=1
set: train.eval_every=2 epochs
set: model.name=resnet18
set: model.stem=small
set: data.path=/a: b #c
set: optim.schedule={name: step, gamma: 0.5}
`)
	require.NoError(t, err)
	require.Equal(t, 0.5, c.Optim.Momentum)
	require.Equal(t, 0.2, c.Optim.LR)
	require.Equal(t, 0.01, c.Optim.WeightDecay)
	require.Equal(t, Every{Epochs: 2}, c.Train.EvalEvery)
	require.Equal(t, "small", c.Model.Stem)
	require.Equal(t, "/a: b #c", c.Data.Path)
	require.Equal(t, "step", c.Optim.Schedule.Name)
	require.Equal(t, 0.05, c.Optim.Schedule.Warmup)

	require.Equal(t, "embedded:half.yaml:2:13", c.Position("optim.momentum").String())
	require.Equal(t, "embedded:test.yaml:3:7", c.Position("optim.lr").String())
	require.Equal(t, "GRADFUSION_SET_OPTIM_WEIGHT_DECAY=0.01", c.Position("optim.weight_decay").String())
	require.Equal(t, "-set train.eval_every=2 epochs", c.Position("train.eval_every").String())
	require.Equal(t, "the default", c.Position("train.seed").String())
}

func TestLaterChoiceDropsSettingsOfEarlierOne(t *testing.T) {
	c, err := load(t, "model: {name: resnet18, stem: small}\nset: model.name=mlp\n")
	require.NoError(t, err)
	require.NotContains(t, string(c.YAML()), "stem")
}

// TestGPTSurvivesYAML: 0 may not be written, so the sizes have to be there.
func TestGPTSurvivesYAML(t *testing.T) {
	want, err := load(t, "model: {name: gpt, context: 99}\ndata: {name: bible}\n")
	require.NoError(t, err)
	got, err := Read("again", want.YAML())
	require.NoError(t, err, "%s", want.YAML())
	require.Equal(t, plainly(want), plainly(got))
	require.Equal(t, 4, got.Model.Layers)
	require.Equal(t, 99, got.Model.Context)
}

func TestVariablesAreDistinct(t *testing.T) {
	seen := make(map[string]string)
	for _, key := range append(Keys(), "fusion.wire", "optim.schedule", "collective.tls") {
		require.Empty(t, seen[variable(key)], key)
		seen[variable(key)] = key
	}
}

func TestDescribeIsComplete(t *testing.T) {
	var described []string
	for _, s := range Describe() {
		described = append(described, s.Key)
		require.NotEmpty(t, s.Meaning, s.Key)
	}
	require.Equal(t, Keys(), described)
}

// TestTablesNameKeys: lookup panics for a key that does not exist.
func TestTablesNameKeys(t *testing.T) {
	c := Default()
	for _, row := range unsupported() {
		c.lookup(row.key)
	}
	for _, row := range choices() {
		require.Contains(t, row.have, c.lookup(row.key).String(), "the default of %s", row.key)
		for _, name := range row.have {
			require.Contains(t, row.all, name, row.key)
		}
	}
	require.NoError(t, c.Validate())
}

// TestAlgorithmsBySize: the key takes what collective.GroupConfig takes.
func TestAlgorithmsBySize(t *testing.T) {
	for _, text := range []string{"hierarchical", "double-tree/8", "tree:64KiB,ring", "allreduce=tree:64KiB,ring;broadcast=tree"} {
		c, err := Load("", Sources{Set: []string{"collective.algorithm=" + text}})
		require.NoError(t, err)
		require.Equal(t, text, c.Collective.Algorithm)
	}
}

// TestUnsupportedAreRefused gives every such key another value.
func TestUnsupportedAreRefused(t *testing.T) {
	for _, row := range unsupported() {
		v := leafText(Default().lookup(row.key))
		other, ok := map[string]string{"true": "false", "false": "true", "auto": "1", "off": "on", `""`: "x", "[]": "[a]", "dynamic": "128",
			"0": "7", "1": "2", "2": "3", "3": "4", "5s": "6s", "1s": "2s", "1f1b": "gpipe"}[v]
		require.True(t, ok, "%s: %s", row.key, v)
		if row.key == "parallel.cuts" {
			other = "[a]"
		} else if row.key == "collective.segment" {
			other = "1MiB"
		} else if row.key == "launch.rendezvous" {
			other = "host:1"
		}
		_, err := Load("", Sources{Set: []string{row.key + "=" + other}})
		require.ErrorContains(t, err, row.key+" asks for ", row.key)
		require.ErrorContains(t, err, "does not have yet", row.key)
	}
}

func TestFilesOnDisk(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	write("configs/one.yaml", "include: ../two.yaml\ndata: {batch: 32}\n")
	write("two.yaml", "data: {batch: 16}\noptim: {lr: 0.2}\n")
	write("configs/two.yaml", "data: {batch: 8}\n")
	write("bad.bin", "\xff\xfe\x00")
	write("big.yaml", strings.Repeat("# comment\n", mostBytes))
	c, err := Load("one.yaml", Sources{})
	require.NoError(t, err)
	require.Equal(t, 32, c.Data.Batch)
	require.Equal(t, 0.2, c.Optim.LR)
	require.Equal(t, "two.yaml:2:13", c.Position("optim.lr").String())
	c, err = Load("two.yaml", Sources{})
	require.NoError(t, err)
	require.Equal(t, 16, c.Data.Batch, "as given comes before configs/")
	for name, want := range map[string]string{"bad.bin": "no text in UTF-8", "big.yaml": "too much", "configs": "this is a directory", "none.yaml": "no such configuration"} {
		_, err = Load(name, Sources{})
		require.ErrorContains(t, err, want, name)
	}
}

func TestBatches(t *testing.T) {
	for _, row := range []struct {
		batch, micro, accumulate, columns int
		world                             bool
		want                              int
		reason                            string
	}{
		{64, 0, 0, 1, false, 64, ""},
		{64, 0, 0, 2, false, 32, ""},
		{64, 0, 0, 3, false, 22, ""},
		{2, 0, 0, 4, false, 1, ""},
		{64, 0, 0, 3, true, 32, ""},
		{20, 0, 0, 3, true, 20, ""},
		{64, 48, 0, 3, false, 48, ""},
		{64, 0, 4, 2, false, 8, ""},
		{64, 8, 4, 2, false, 8, ""},
		{64, 16, 4, 2, false, 0, "contradicts"},
		{64, 0, 4, 3, false, 0, "no multiple of 3 columns x 4"},
		{64, 65, 0, 1, false, 0, "only data.batch = 64"},
	} {
		c := Default()
		c.Data.Batch, c.Train.MicroBatch, c.Train.Accumulate = row.batch, Count(row.micro), Count(row.accumulate)
		if row.world {
			c.Train.Deterministic = "world"
		}
		got, err := Batches(c, row.columns)
		if row.reason != "" {
			require.ErrorContains(t, err, row.reason)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, row.want, got, "%+v", row)
	}
}

func TestColumns(t *testing.T) {
	c := Default()
	columns, err := Columns(c, 3)
	require.NoError(t, err)
	require.Equal(t, 3, columns)
	c.Parallel.Pipeline = 2
	_, err = Columns(c, 3)
	require.ErrorContains(t, err, "3 ranks cannot be divided")
	c.Parallel.Data = 2
	_, err = Columns(c, 6)
	require.ErrorContains(t, err, "start 4 ranks")
}

func TestMomentumOfZeroIsPlainDescent(t *testing.T) {
	c := Default()
	c.Optim.Momentum = 0
	require.Equal(t, "sgd", c.Optim.Optimizer().Name)
	require.Equal(t, 100, c.Optim.Rates(100).Total)
}

func TestEveryKnownKeyIsItsOwnNearest(t *testing.T) {
	for _, key := range Keys() {
		last := key[strings.LastIndexByte(key, '.')+1:]
		require.Equal(t, last, spelling.Nearest(last, []string{last}))
	}
	require.False(t, slices.Contains(Keys(), ""))
}

func TestNetworkTakesOnlyItsOwnSettings(t *testing.T) {
	c := Default()
	c.Model = Model{Name: "mlp", Stem: "small", Stages: []int{1}, Hidden: []int{3}, Width: 64, Dropout: 0.5}
	m := c.Network(data.Shape{Channels: 1, Height: 28, Width: 28, Classes: 10})
	require.Empty(t, m.Stem)
	require.Nil(t, m.Stages)
	require.Equal(t, []int{3}, m.Hidden)
	require.Equal(t, float32(0.5), m.Dropout)
	c.Model.Name = "resnet18"
	m = c.Network(data.Shape{Channels: 1, Height: 28, Width: 28, Classes: 10})
	require.Equal(t, "small", m.Stem)
	require.Nil(t, m.Hidden)
	require.Zero(t, m.Features)
}

// TestByteOrderMark: it changes neither what is read nor where mistakes are.
func TestByteOrderMark(t *testing.T) {
	c, err := Read("a.yaml", []byte("\ufeffoptim: {lr: 0.5}\n"))
	require.NoError(t, err)
	require.Equal(t, 0.5, c.Optim.LR)
	_, err = Read("a.yaml", []byte("\ufeffoptm: {lr: 0.5}\n"))
	require.ErrorContains(t, err, "a.yaml:1:1: unknown key \"optm\"")
}

// TestCommon: what ranks must share is there with its value, what belongs to a
// rank or to nothing that was chosen is not.
func TestCommon(t *testing.T) {
	c, err := Load("", Sources{Set: []string{"model.name=mlp", "optim.lr=0.5", "checkpoint.dir=d", "data.workers=3"}})
	require.NoError(t, err)
	got := c.Common()
	require.Contains(t, got, "optim.lr: 0.5")
	require.Contains(t, got, "model.name: mlp")
	require.Contains(t, got, "observe.trace: false")
	for _, line := range got {
		for _, absent := range []string{"checkpoint.", "compute.", "data.workers", "observe.run_dir", "model.stem"} {
			require.False(t, strings.HasPrefix(line, absent), line)
		}
	}
}
