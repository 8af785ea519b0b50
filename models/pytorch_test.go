package models_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
)

// dump is a file that testdata/pytorch/dump.py wrote.
type dump struct {
	header map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}
	body []byte
}

func readDump(t *testing.T, name string) dump {
	raw, err := os.ReadFile(filepath.Join("testdata", "pytorch", name))
	require.NoError(t, err)
	n := binary.LittleEndian.Uint64(raw)
	d := dump{body: raw[8+n:]}
	require.NoError(t, json.Unmarshal(raw[8:8+n], &d.header))
	return d
}

func (d dump) words(t *testing.T, name string) []uint32 {
	h, ok := d.header[name]
	require.True(t, ok, "the dump has no %s", name)
	b := d.body[h.Offsets[0]:h.Offsets[1]]
	out := make([]uint32, len(b)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out
}

func (d dump) f32(t *testing.T, name string) []float32 {
	w := d.words(t, name)
	out := make([]float32, len(w))
	for i := range w {
		out[i] = math.Float32frombits(w[i])
	}
	return out
}

func (d dump) i32(t *testing.T, name string) []int32 {
	w := d.words(t, name)
	out := make([]int32, len(w))
	for i := range w {
		out[i] = int32(w[i])
	}
	return out
}

// relative is rms(a - b) / rms(b).
func relative(a, b []float32) float64 {
	var diff, norm float64
	for i := range b {
		d := float64(a[i]) - float64(b[i])
		diff += d * d
		norm += float64(b[i]) * float64(b[i])
	}
	return math.Sqrt(diff / norm)
}

// TestAgainstPyTorch compares logits, loss and every gradient with PyTorch's
// at each of ten steps, teacher-forced: each step starts from the dump's
// weights, so that drift does not add up. 1e-4 of a tensor's rms leaves room
// for other orders of summation in float32 over these small shapes, which
// differ by about 1e-6, and for nothing else.
func TestAgainstPyTorch(t *testing.T) {
	fast, err := cpu.New(cpu.Config{})
	require.NoError(t, err)
	defer fast.Close()
	for _, dev := range []device.Device{naive.New(), fast} {
		for file, c := range map[string]models.Config{
			"mlp.safetensors":    {Name: "mlp", Channels: 1, Height: 8, Width: 8, Classes: 10, Hidden: []int{32, 32}},
			"gpt.safetensors":    {Name: "gpt", Vocabulary: 13, Context: 9, Layers: 2, Heads: 2, Features: 16},
			"resnet.safetensors": {Name: "resnet20", Channels: 3, Height: 16, Width: 16, Classes: 10, Stages: []int{1, 1, 1}, BaseChannels: 8},
		} {
			t.Run(fmt.Sprintf("%s/%s", dev.Name(), c.Name), func(t *testing.T) {
				m, err := models.New(c)
				require.NoError(t, err)
				require.NoError(t, nn.Materialize(dev, m.Blocks, 1))
				d, worst := readDump(t, file), 0.0
				for step := range 10 {
					worst = max(worst, compareStep(t, d, step, m, nn.NewTape(dev)))
				}
				t.Logf("largest difference: %.1e of a tensor's rms", worst)
			})
		}
	}
}

func compareStep(t *testing.T, d dump, step int, m *models.Model, tape *nn.Tape) (worst float64) {
	at := func(format string, args ...any) string {
		return fmt.Sprintf("%d/"+format, append([]any{step}, args...)...)
	}
	for _, p := range m.Params() {
		require.Equal(t, p.Len(), copy(p.Value.F32(), d.f32(t, at("weight/%s", p.Name))))
		p.ZeroGrad()
	}
	var x device.Buf
	y := d.i32(t, at("y"))
	samples := len(y)
	if m.Context > 0 {
		x, samples = device.FromI32(d.i32(t, at("x"))), len(y)/m.Context
	} else {
		x = device.FromF32(d.f32(t, at("x")))
	}
	tape.Begin(nn.Pass{Training: true})
	out := nn.Forward(tape, m.Blocks, tape.Input(x, m.Input(samples), false))
	loss := tape.CrossEntropy(out[0], device.FromI32(y), nn.CrossEntropyConfig{})
	check := func(name string, got, want []float32) {
		r := relative(got, want)
		require.Lessf(t, r, 1e-4, "step %d: %s", step, name)
		worst = max(worst, r)
	}
	check("logits", out[0].Value.F32(), d.f32(t, at("logits")))
	check("loss", []float32{float32(loss.Score().Sum() / float64(len(y)))}, d.f32(t, at("loss")))
	tape.SeedLoss(loss, 1/float32(len(y)))
	tape.Backward()
	for _, p := range m.Params() {
		check("gradient of "+p.Name, sumOfUses(t, p), d.f32(t, at("grad/%s", p.Name)))
	}
	return worst
}

// sumOfUses is the gradient of a parameter over all its uses.
func sumOfUses(t *testing.T, p *nn.Param) []float32 {
	first, ok := p.Grad(0)
	require.True(t, ok, p.Name)
	out := append([]float32(nil), first.F32()...)
	for use := 1; use < p.Uses(); use++ {
		more, ok := p.Grad(use)
		require.True(t, ok, p.Name)
		for i, v := range more.F32() {
			out[i] += v
		}
	}
	return out
}
