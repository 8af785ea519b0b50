package models_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
)

func config(name string, channels, size, classes int) models.Config {
	return models.Config{Name: name, Channels: channels, Height: size, Width: size, Classes: classes}
}

// The ImageNet forms' counts are those that torchvision publishes. Those of the
// CIFAR forms follow from the form: with shortcut A they are the 0.27, 0.46,
// 0.66, 0.85 and 1.7 million of He et al. 2016, table 6; B adds two projections
// with BatchNorm, 16*32+2*32 + 32*64+2*64 = 2,752.
func TestParamCounts(t *testing.T) {
	for _, c := range []struct {
		config models.Config
		want   int
	}{
		{config("mlp", 1, 28, 10), 784*1024 + 1024 + 1024*1024 + 1024 + 1024*10 + 10},
		{config("cnn", 1, 28, 10), 32*9 + 32 + 64*32*9 + 64 + 9216*128 + 128 + 128*10 + 10},
		{config("resnet18", 3, 224, 1000), 11_689_512},
		{config("resnet34", 3, 224, 1000), 21_797_672},
		{config("resnet50", 3, 224, 1000), 25_557_032},
		{config("resnet101", 3, 224, 1000), 44_549_160},
		{config("resnet152", 3, 224, 1000), 60_192_808},
		{config("resnet20", 3, 32, 10), 269_722 + 2_752},
		{config("resnet32", 3, 32, 10), 464_154 + 2_752},
		{config("resnet44", 3, 32, 10), 658_586 + 2_752},
		{config("resnet56", 3, 32, 10), 853_018 + 2_752},
		{config("resnet110", 3, 32, 10), 1_727_962 + 2_752},
	} {
		m, err := models.New(c.config)
		require.NoError(t, err)
		require.Equal(t, c.want, m.ParamCount(), c.config.Name)
	}
	a := config("resnet20", 3, 32, 10)
	a.Shortcut = "A"
	m, err := models.New(a)
	require.NoError(t, err)
	require.Equal(t, 269_722, m.ParamCount())
}

// small shrinks a model so that the naive device runs it in a moment.
func small(name string, size int) models.Config {
	c := config(name, 2, size, 3)
	switch name {
	case "mlp", "cnn":
		c.Hidden = []int{5}
	case "resnet20", "resnet32", "resnet44", "resnet56", "resnet110":
		c.Stages, c.BaseChannels = []int{1, 1}, 4
	default:
		c.Stages, c.BaseChannels = []int{1, 1}, 4
		c.Stem = "small"
	}
	return c
}

// Every model runs forward and backward, every parameter gets its gradient
// once, the order of use is the order of Params, and names are unique.
func TestEveryModelRuns(t *testing.T) {
	for _, name := range models.Names() {
		for _, c := range variants(small(name, 8)) {
			m, err := models.New(c)
			require.NoError(t, err)
			run(t, m)
		}
	}
}

func variants(c models.Config) []models.Config {
	dropped := c
	dropped.Dropout = 0.5
	if c.Stages == nil {
		return []models.Config{c, dropped}
	}
	padded, large := c, c
	padded.Shortcut, large.Stem = "A", "imagenet"
	if c.Stem == "" {
		return []models.Config{c, dropped, padded}
	}
	return []models.Config{c, dropped, padded, large}
}

func run(t *testing.T, m *models.Model) {
	dev := naive.New()
	require.NoError(t, nn.Materialize(dev, m.Blocks, 1))
	var delivered []*nn.Param
	for _, p := range m.Params() {
		p.OnGrad(func(p *nn.Param, use, leaf int) {
			require.Zero(t, use)
			require.Equal(t, 4, leaf)
			delivered = append(delivered, p)
		})
	}
	tape := nn.NewTape(dev)
	tape.Begin(nn.Pass{Training: true, Seed: 1, Micro: 4})
	in := m.Input(2)
	x, err := dev.Alloc(device.F32, in.Len())
	require.NoError(t, err)
	nn.Init{Kind: nn.Normal, Scale: 1}.Fill(x.F32(), 1, "x")
	out := nn.Forward(tape, m.Blocks, tape.Input(x, in, false))
	require.Equal(t, nn.Plain(2, m.Classes), out[0].Shape)
	loss := tape.CrossEntropy(out[0], device.FromI32([]int32{0, 2}), nn.CrossEntropyConfig{})
	tape.SeedLoss(loss, 0.5)
	tape.Backward()

	params := m.Params()
	require.Len(t, delivered, len(params))
	for i, p := range params {
		require.Same(t, p, delivered[len(params)-1-i], "%s is delivered in the reverse order of use", p.Name)
		require.Equal(t, p.Name, tape.Uses()[i].Param.Name)
	}
	names := map[string]bool{}
	for _, s := range nn.States(m.Blocks) {
		require.False(t, names[s.Name], s.Name)
		names[s.Name] = true
	}
}
