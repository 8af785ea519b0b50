package trainer_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// written is the configuration of a small GPT on a text of 1,100 bytes, a tenth
// of which is no whole number of windows.
func written(t *testing.T, set ...string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.txt")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("abcdefghij", 110)), 0o600))
	base := []string{"model.name=gpt", "model.layers=1", "model.heads=2", "model.width=16", "model.context=12", "data.name=text", "data.path=" + path,
		"data.tokens=characters", "data.batch=20", "optim.name=adamw", "optim.lr=0.02", "train.epochs=10", "train.eval_every=never", "compute.threads=1"}
	cfg, err := config.Load("", config.Sources{Set: append(base, set...)})
	require.NoError(t, err)
	return cfg
}

// A text trains to the same bits on any number of ranks, and its evaluation
// counts each token once: 110 are held out, 109 of them have one before them.
func TestTextOnAnyWorld(t *testing.T) {
	cfg := written(t, "train.deterministic=world", "train.micro_batch=3")
	var told []trainer.Event
	want, err := trainer.Run(t.Context(), trainer.Job{Config: cfg, On: func(e trainer.Event) { told = append(told, e) }})
	require.NoError(t, err)
	require.Equal(t, 50, want.Steps, "82 windows of 12 in batches of 20")
	require.Less(t, *want.EvalLoss, 0.3, "each letter follows from the one before")
	counted := *want.EvalAccuracy * 109
	require.InDelta(t, math.Round(counted), counted, 1e-9)
	require.InDelta(t, math.Log(10), *want.LossFirst, 0.2, "the loss is the mean over tokens")
	for _, n := range []int{2, 3} {
		got, err := ranks(t, n, trainer.Job{Config: cfg})
		require.NoError(t, err)
		require.Equal(t, want.StateSHA256, got.StateSHA256, "%d ranks", n)
		require.Equal(t, want.GradSHA256First, got.GradSHA256First)
		require.Equal(t, *want.EvalAccuracy, *got.EvalAccuracy)
		require.Equal(t, *want.EvalLoss, *got.EvalLoss)
		require.Equal(t, *want.LossLast, *got.LossLast)
	}
	for _, e := range told {
		if e.Kind == trainer.Stepped || e.Kind == trainer.Evaluated {
			require.Equal(t, math.Exp(e.Loss), e.Perplexity)
		}
		if e.Kind == trainer.Stepped {
			require.InEpsilon(t, 12*e.SamplesPerSec, e.TokensPerSec, 1e-9)
		}
	}
}

// The gradient is that of the mean over all tokens of the step, whatever the
// micro-batches and ranks: a step of plain descent with rate 1 moves a parameter
// by it. Sums in another order differ by about 1e-6 of the gradient's rms.
func TestGradientIsOfTheMeanOverTokens(t *testing.T) {
	set := []string{"data.batch=82", "train.steps=1", "optim.name=sgd", "optim.lr=1", "optim.weight_decay=0", "optim.schedule.name=constant", "optim.schedule.warmup=0"}
	cfg := written(t, set...)
	d := cfg.Data
	d.Context = cfg.Model.Context
	source, err := data.Open(d)
	require.NoError(t, err)
	build := func() *models.Model {
		m, err := models.New(cfg.Network(source.Shape()))
		require.NoError(t, err)
		return m
	}
	want := wholeGradient(t, build(), source, cfg.Train.Seed)
	for _, micro := range []string{"82", "7"} {
		for _, n := range []int{1, 3} {
			m, start := build(), build()
			require.NoError(t, nn.Materialize(naive.New(), start.Blocks, cfg.Train.Seed))
			_, err := ranks(t, n, trainer.Job{Config: written(t, append(set, "train.micro_batch="+micro)...), Data: source, Model: m})
			require.NoError(t, err)
			for i, p := range m.Params() {
				moved := 0.0
				for k, v := range p.Value.F32() {
					d := float64(start.Params()[i].Value.F32()[k]) - float64(v) - want[p.Name][k]
					moved += d * d
				}
				rounded := 1e-7 * math.Sqrt(float64(p.Len())) // half a unit in the last place of weights of about 1
				require.Less(t, math.Sqrt(moved), 1e-4*norm(want[p.Name])+rounded, "%s on %d ranks", p.Name, n)
			}
		}
	}
}

func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// wholeGradient computes the gradient of the mean over all training tokens in
// one pass.
func wholeGradient(t *testing.T, m *models.Model, source *data.Source, seed uint64) map[string][]float64 {
	dev := naive.New()
	require.NoError(t, nn.Materialize(dev, m.Blocks, seed))
	windows, err := source.Training(data.Augment{}, 0)
	require.NoError(t, err)
	n, size := windows.Len(), windows.Sizes()
	to := data.Samples{Tokens: make([]int32, n*size.Tokens), Y: make([]int32, n*size.Y)}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	require.NoError(t, windows.Fill(to, all, 0))
	tape := nn.NewTape(dev)
	tape.Begin(nn.Pass{Training: true})
	loss := trainer.CrossEntropy(tape, nn.Forward(tape, m.Blocks, tape.Input(device.FromI32(to.Tokens), m.Input(n), false)),
		parallel.Batch{Target: device.FromI32(to.Y)})
	tape.SeedLoss(loss, 1/float32(len(to.Y)))
	tape.Backward()
	out := map[string][]float64{}
	for _, p := range m.Params() {
		out[p.Name] = make([]float64, p.Len())
		for use := range p.Uses() {
			g, _ := p.Grad(use)
			for k, v := range g.F32() {
				out[p.Name][k] += float64(v)
			}
		}
	}
	return out
}

func TestFiguresOfTexts(t *testing.T) {
	dir := t.TempDir()
	s, err := trainer.Run(t.Context(), trainer.Job{Config: written(t, "train.steps=6"), RunDir: dir})
	require.NoError(t, err)
	require.InEpsilon(t, 12*s.SamplesPerSec, *s.TokensPerSec, 1e-9)
	file, err := os.Open(filepath.Join(dir, "metrics.jsonl"))
	require.NoError(t, err)
	defer file.Close()
	lines := 0
	for scan := bufio.NewScanner(file); scan.Scan(); lines++ {
		var line struct {
			Samples float64 `json:"samples_per_sec"`
			Tokens  float64 `json:"tokens_per_sec"`
		}
		require.NoError(t, json.Unmarshal(scan.Bytes(), &line))
		require.InEpsilon(t, 12*line.Samples, line.Tokens, 1e-9)
	}
	require.Equal(t, 6, lines)

	images, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, "train.steps=2")})
	require.NoError(t, err)
	require.Nil(t, images.TokensPerSec)
}

func TestKindsOfDataAreNotMixed(t *testing.T) {
	for set, want := range map[string]string{
		"model.name=gpt":  "model.name: gpt reads text, but data.name: fashion-mnist has images; the texts are bible, text, synthetic-text",
		"data.name=bible": "data.name: bible is a text, which model.name: resnet20 cannot read; gpt can",
	} {
		_, err := config.Load("", config.Sources{Set: []string{set}})
		require.ErrorContains(t, err, want)
	}
}

// TestResumeNoticesOtherData: a text that changed since the checkpoint was
// written, be it by one letter or by its alphabet only.
func TestResumeNoticesOtherData(t *testing.T) {
	dir := t.TempDir()
	cfg := written(t, "checkpoint.dir="+dir, "train.epochs=1")
	text, err := os.ReadFile(cfg.Data.Path)
	require.NoError(t, err)
	want, err := trainer.Run(t.Context(), trainer.Job{Config: cfg})
	require.NoError(t, err)

	other := func(at int) []byte {
		out := append([]byte(nil), text...)
		out[at] = 'a' + (out[at]-'a'+1)%10
		return out
	}
	for _, changed := range [][]byte{other(5), text[10:], []byte(strings.ToUpper(string(text)))} {
		require.NoError(t, os.WriteFile(cfg.Data.Path, changed, 0o600))
		_, err := trainer.Run(t.Context(), trainer.Job{Config: cfg, Resume: true})
		require.ErrorContains(t, err, "the training set has changed since checkpoint "+dir)
	}
	for _, c := range []struct {
		text  []byte
		warns int
	}{{other(1050), 1}, {text, 0}} {
		require.NoError(t, os.WriteFile(cfg.Data.Path, c.text, 0o600))
		var warned []string
		got, err := trainer.Run(t.Context(), trainer.Job{Config: cfg, Resume: true, On: listen(trainer.Warned, &warned)})
		require.NoError(t, err)
		require.Equal(t, want.StateSHA256, got.StateSHA256)
		require.Len(t, warned, c.warns)
		require.Equal(t, c.warns, strings.Count(strings.Join(warned, ""), "the test set has changed"))
	}
}

// TestResumeNoticesOtherPixels: one that changed.
func TestResumeNoticesOtherPixels(t *testing.T) {
	cfg := small(t, "checkpoint.dir="+t.TempDir(), "train.epochs=0", "train.steps=1")
	_, err := trainer.Run(t.Context(), trainer.Job{Config: cfg})
	require.NoError(t, err)
	images, err := data.Open(cfg.Data)
	require.NoError(t, err)
	images.Train.Pixels[1000] ^= 1
	_, err = trainer.Run(t.Context(), trainer.Job{Config: cfg, Data: images, Resume: true})
	require.ErrorContains(t, err, "the training set has changed")
}

// TestResumeNoticesAnotherNetwork: heads do not show in the shapes of weights;
// what is computed again changes nothing.
func TestResumeNoticesAnotherNetwork(t *testing.T) {
	dir := "checkpoint.dir=" + t.TempDir()
	cfg := written(t, dir, "train.epochs=1")
	_, err := trainer.Run(t.Context(), trainer.Job{Config: cfg})
	require.NoError(t, err)
	_, err = trainer.Run(t.Context(), trainer.Job{Config: written(t, dir, "train.epochs=1", "model.heads=4"), Resume: true})
	require.ErrorContains(t, err, "is of another network: model.heads is 4, was 2")
	_, err = trainer.Run(t.Context(), trainer.Job{Config: written(t, "checkpoint.dir="+ofMoreLayers(t), "train.epochs=1"), Resume: true})
	require.ErrorContains(t, err, "is of another network: it has transformer.h.1.attn.c_attn.bias, which this one has not")
	var warned []string
	_, err = trainer.Run(t.Context(), trainer.Job{Config: written(t, dir, "train.epochs=1", "model.recompute=blocks"), Resume: true, On: listen(trainer.Warned, &warned)})
	require.NoError(t, err)
	require.Empty(t, warned)
}

// ofMoreLayers is the directory of a run whose network has a layer more than written's.
func ofMoreLayers(t *testing.T) string {
	dir := t.TempDir()
	_, err := trainer.Run(t.Context(), trainer.Job{Config: written(t, "checkpoint.dir="+dir, "train.epochs=1", "model.layers=2")})
	require.NoError(t, err)
	return dir
}
