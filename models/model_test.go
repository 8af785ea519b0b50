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

// GPT-2 small: 124,439,808 with tied embeddings, as OpenAI's checkpoint has.
func TestParamCountOfGPT2(t *testing.T) {
	m, err := models.New(models.Config{Name: "gpt", Vocabulary: 50257, Context: 1024, Layers: 12, Heads: 12, Features: 768})
	require.NoError(t, err)
	require.Equal(t, 124_439_808, m.ParamCount())
}

// small shrinks a model so that the naive device runs it in a moment.
func small(name string, size int) models.Config {
	c := config(name, 2, size, 3)
	switch name {
	case "gpt":
		return models.Config{Name: name, Vocabulary: 3, Context: size, Layers: 2, Heads: 2, Features: 4}
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

// samples makes n samples and their targets.
func samples(t testing.TB, dev device.Device, m *models.Model, n int) (x, y device.Buf) {
	in := m.Input(n)
	if m.Context > 0 {
		return labels(in.Len(), m.Vocabulary), labels(in.Len()+1, m.Vocabulary).Slice(1, in.Len()+1)
	}
	x, err := dev.Alloc(device.F32, in.Len())
	require.NoError(t, err)
	nn.Init{Kind: nn.Normal, Scale: 1}.Fill(x.F32(), 1, "x")
	return x, labels(n, m.Classes)
}

// labels are n numbers below limit.
func labels(n, limit int) device.Buf {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32((i*i + 2*i) % limit)
	}
	return device.FromI32(out)
}

func run(t *testing.T, m *models.Model) {
	dev := naive.New()
	require.NoError(t, nn.Materialize(dev, m.Blocks, 1))
	var delivered []nn.Use
	for _, p := range m.Params() {
		p.OnGrad(func(p *nn.Param, use, leaf int) {
			require.Equal(t, 4, leaf)
			delivered = append(delivered, nn.Use{Param: p, Index: use})
		})
	}
	tape := nn.NewTape(dev)
	tape.Begin(nn.Pass{Training: true, Seed: 1, Micro: 4})
	x, y := samples(t, dev, m, 2)
	out := nn.Forward(tape, m.Blocks, tape.Input(x, m.Input(2), false))
	if m.Context == 0 {
		require.Equal(t, nn.Plain(2, m.Classes), out[0].Shape)
	} else {
		require.Equal(t, nn.Plain(2, m.Context, m.Vocabulary), out[0].Shape)
	}
	loss := tape.CrossEntropy(out[0], y, nn.CrossEntropyConfig{})
	tape.SeedLoss(loss, 0.5)
	tape.Backward()

	var first []*nn.Param
	require.Len(t, delivered, len(tape.Uses()))
	for i, use := range tape.Uses() {
		require.Equal(t, use, delivered[len(delivered)-1-i], "%s is delivered in the reverse order of use", use.Param.Name)
		if use.Index == 0 {
			first = append(first, use.Param)
		}
	}
	require.Equal(t, m.Params(), first, "Params are in the order of first use")
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
		"model gpt: it reads tokens, and no images":                                                                                                    {Name: "gpt", Vocabulary: 5, Context: 4, Classes: 2},
		"model mlp: it reads images, and no tokens":                                                                                                    change("mlp", func(c *models.Config) { c.Context = 4 }),
		"model mlp: layers, heads and features are settings of gpt":                                                                                    change("mlp", func(c *models.Config) { c.Heads = 4 }),
		"model gpt: windows of 0 tokens of a vocabulary of 5: both must be at least 1":                                                                 {Name: "gpt", Vocabulary: 5},
		"model gpt: a width of 10 is not divided by 4 heads":                                                                                           {Name: "gpt", Vocabulary: 5, Context: 4, Features: 10},
		"model gpt: -1 layers, 4 heads and a width of 128: all must be at least 1":                                                                     {Name: "gpt", Vocabulary: 5, Context: 4, Layers: -1},
		"model gpt: hidden widths are a setting of mlp and cnn":                                                                                        {Name: "gpt", Vocabulary: 5, Context: 4, Hidden: []int{4}},
		"model gpt: stem, shortcut, stages and base channels are settings of ResNets":                                                                  {Name: "gpt", Vocabulary: 5, Context: 4, Stem: "small"},
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

// A model cut between any two blocks computes the bits of the whole. What is
// used on both sides of the cut is left out: a pipeline has a copy in each stage.
func TestCutModelIsTheSame(t *testing.T) {
	for _, name := range []string{"resnet20", "gpt"} {
		c := small(name, 8)
		c.Dropout = 0.5
		cutEverywhere(t, c)
	}
}

func cutEverywhere(t *testing.T, c models.Config) {
	m, err := models.New(c)
	require.NoError(t, err)
	dev := naive.New()
	require.NoError(t, nn.Materialize(dev, m.Blocks, 1))
	x, y := samples(t, dev, m, 3)
	pass := nn.Pass{Training: true, Seed: 9}

	grads := func(cut int) map[string][]float32 {
		front, back := nn.NewTape(dev), nn.NewTape(dev)
		front.Begin(pass)
		back.Begin(pass)
		middle := nn.Forward(front, m.Blocks[:cut], front.Input(x, m.Input(3), false))[0]
		handed := back.Input(middle.Value, middle.Shape, cut > 0)
		loss := back.CrossEntropy(nn.Forward(back, m.Blocks[cut:], handed)[0], y, nn.CrossEntropyConfig{})
		back.SeedLoss(loss, 1)
		back.Backward()
		if cut > 0 {
			front.SeedGrad(middle, handed.Grad())
			front.Backward()
		}
		out := map[string][]float32{}
		for _, p := range m.Params() {
			for use := range p.Uses() {
				if g, written := p.Grad(use); written {
					out[p.Name] = append(out[p.Name], g.F32()...)
				}
			}
			p.ZeroGrad()
		}
		return out
	}
	want := grads(0)
	delete(want, "transformer.wte.weight")
	for cut := 1; cut < len(m.Blocks); cut++ {
		got := grads(cut)
		delete(got, "transformer.wte.weight")
		require.Equal(t, want, got, "cut before block %d", cut)
	}
}
