package models_test

import (
	"strings"
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

func TestBadConfigs(t *testing.T) {
	change := func(name string, f func(*models.Config)) models.Config {
		c := config(name, 3, 32, 10)
		f(&c)
		return c
	}
	known := strings.Join(models.Names(), ", ")
	for want, c := range map[string]models.Config{
		`unknown model "resnt18"; did you mean resnet18? (known: ` + known + ")":                                                                       {Name: "resnt18"},
		`unknown model "vgg" (known: ` + known + ")":                                                                                                   {Name: "vgg"},
		`no model is named (known: ` + known + ")":                                                                                                     {},
		"model mlp: images of 0 x 0 x 0 (channels, height, width): all must be at least 1":                                                             {Name: "mlp"},
		"model mlp: 0 classes: must be at least 1":                                                                                                     change("mlp", func(c *models.Config) { c.Classes = 0 }),
		"model mlp: dropout 1 is outside of [0, 1)":                                                                                                    change("mlp", func(c *models.Config) { c.Dropout = 1 }),
		"model mlp: a hidden layer of 0: must be at least 1":                                                                                           change("mlp", func(c *models.Config) { c.Hidden = []int{8, 0} }),
		"model mlp: stem, shortcut, stages and base channels are settings of ResNets":                                                                  change("mlp", func(c *models.Config) { c.Stem = "small" }),
		"model cnn: stem, shortcut, stages and base channels are settings of ResNets":                                                                  change("cnn", func(c *models.Config) { c.Shortcut = "A" }),
		"model resnet20: hidden widths are a setting of mlp and cnn":                                                                                   change("resnet20", func(c *models.Config) { c.Hidden = []int{8} }),
		`model resnet20: stem "imagenet": this form has the small one only`:                                                                            change("resnet20", func(c *models.Config) { c.Stem = "imagenet" }),
		`model resnet18: stem "tiny" is neither imagenet nor small`:                                                                                    change("resnet18", func(c *models.Config) { c.Stem = "tiny" }),
		`model resnet18: shortcut "C" is neither A nor B`:                                                                                              change("resnet18", func(c *models.Config) { c.Shortcut = "C" }),
		"model resnet18: -1 base channels and 4 stages: both must be at least 1":                                                                       change("resnet18", func(c *models.Config) { c.BaseChannels = -1 }),
		"model resnet18: a stage of 0 blocks: must be at least 1":                                                                                      change("resnet18", func(c *models.Config) { c.Stages = []int{1, 0} }),
		"model resnet20: images of 3 x 32 are too small: this form shrinks them 4 times, so 4 x 4 is the least":                                        change("resnet20", func(c *models.Config) { c.Height = 3 }),
		"model resnet50: images of 28 x 28 are too small: this form shrinks them 32 times (a quarter of it with stem: small), so 32 x 32 is the least": change("resnet50", func(c *models.Config) { c.Height, c.Width = 28, 28 }),
		"model cnn: images of 5 x 32 are too small: two 3 x 3 convolutions without padding and a 2 x 2 pool, so 6 x 6 is the least":                    change("cnn", func(c *models.Config) { c.Height = 5 }),
	} {
		_, err := models.New(c)
		require.EqualError(t, err, want)
	}
}

// The names are torchvision's.
func TestNames(t *testing.T) {
	c := config("resnet50", 3, 32, 10)
	c.Stages = []int{1, 1}
	m, err := models.New(c)
	require.NoError(t, err)
	var blocks, params, states []string
	for _, b := range m.Blocks {
		blocks = append(blocks, b.Name())
	}
	for _, p := range m.Params() {
		params = append(params, p.Name)
	}
	for _, s := range nn.States(m.Blocks) {
		states = append(states, s.Name)
	}
	require.Equal(t, []string{"stem", "layer1.0", "layer2.0", "head"}, blocks)
	require.Subset(t, params, []string{"conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv3.weight",
		"layer2.0.downsample.0.weight", "layer2.0.downsample.1.bias", "layer2.0.bn2.weight", "fc.weight", "fc.bias"})
	require.Subset(t, states, []string{"bn1.running_mean", "layer1.0.downsample.1.running_var"})
	for _, p := range m.Params() {
		require.Equal(t, len(p.Shape) > 1, p.Decay, "%s: only matrices and kernels decay", p.Name)
	}
}

// A model cut between any two blocks computes the bits of the whole.
func TestCutModelIsTheSame(t *testing.T) {
	c := small("resnet20", 8)
	c.Dropout = 0.5
	m, err := models.New(c)
	require.NoError(t, err)
	dev := naive.New()
	require.NoError(t, nn.Materialize(dev, m.Blocks, 1))
	in := m.Input(3)
	x, err := dev.Alloc(device.F32, in.Len())
	require.NoError(t, err)
	nn.Init{Kind: nn.Normal, Scale: 1}.Fill(x.F32(), 1, "x")
	labels := device.FromI32([]int32{0, 2, 1})
	pass := nn.Pass{Training: true, Seed: 9}

	grads := func(cut int) map[string][]float32 {
		front, back := nn.NewTape(dev), nn.NewTape(dev)
		front.Begin(pass)
		back.Begin(pass)
		middle := nn.Forward(front, m.Blocks[:cut], front.Input(x, in, false))[0]
		handed := back.Input(middle.Value, middle.Shape, true)
		loss := back.CrossEntropy(nn.Forward(back, m.Blocks[cut:], handed)[0], labels, nn.CrossEntropyConfig{})
		back.SeedLoss(loss, 1)
		back.Backward()
		if cut > 0 {
			front.SeedGrad(middle, handed.Grad())
			front.Backward()
		}
		out := map[string][]float32{}
		for _, p := range m.Params() {
			g, written := p.Grad(0)
			require.True(t, written, p.Name)
			out[p.Name] = append([]float32(nil), g.F32()...)
			p.ZeroGrad()
		}
		return out
	}
	want := grads(0)
	for cut := 1; cut < len(m.Blocks); cut++ {
		require.Equal(t, want, grads(cut), "cut before block %d", cut)
	}
}
