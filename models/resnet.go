package models

import (
	"errors"
	"fmt"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// kind is the form of a residual block; its value is the expansion of its
// output channels.
type kind int

const (
	basic      kind = 1 // 3 x 3, 3 x 3
	bottleneck kind = 4 // 1 x 1, 3 x 3 with the stride, 1 x 1 to four times the channels
)

// cifar is the form for small images of He et al. 2016, section 4.2: a 3 x 3
// stem and three stages of n basic blocks of 16, 32 and 64 channels.
func cifar(n int) func(Config) ([]nn.Block, error) {
	return func(c Config) ([]nn.Block, error) {
		if c.Stem != "" && c.Stem != "small" {
			return nil, fmt.Errorf("stem %q: this form has the small one only", c.Stem)
		}
		c.Stem = "small"
		return resnet(c, basic, 16, []int{n, n, n})
	}
}

// imagenet is the form of He et al. 2016, table 1, with the stride of a
// bottleneck on its 3 x 3 convolution.
func imagenet(k kind, stages ...int) func(Config) ([]nn.Block, error) {
	return func(c Config) ([]nn.Block, error) {
		switch c.Stem {
		case "", "imagenet":
			c.Stem = "imagenet"
		case "small":
		default:
			return nil, fmt.Errorf("stem %q is neither imagenet nor small", c.Stem)
		}
		return resnet(c, k, 64, stages)
	}
}

func resnet(c Config, k kind, base int, stages []int) ([]nn.Block, error) {
	if c.Stages != nil {
		stages = c.Stages
	}
	if c.BaseChannels != 0 {
		base = c.BaseChannels
	}
	if err := c.checkResNet(base, stages); err != nil {
		return nil, err
	}
	blocks := []nn.Block{stem(c, base)}
	in, channels := base, base
	for i, n := range stages {
		for j := range n {
			stride := 1
			if i > 0 && j == 0 {
				stride = 2
			}
			b := newResidual(fmt.Sprintf("layer%d.%d", i+1, j), k, in, channels, stride, c.Shortcut == "A")
			blocks = append(blocks, b)
			in = b.out
		}
		channels *= 2
	}
	return append(blocks, nn.NewSeq("head", nn.GlobalAvgPool{Name: "avgpool"},
		nn.Dropout{Name: "dropout", P: c.Dropout}, nn.NewLinear("fc", in, c.Classes, nn.LinearConfig{}))), nil
}

func (c Config) checkResNet(base int, stages []int) error {
	if c.Hidden != nil {
		return errors.New("hidden widths are a setting of mlp and cnn")
	}
	if c.Shortcut != "" && c.Shortcut != "A" && c.Shortcut != "B" {
		return fmt.Errorf("shortcut %q is neither A nor B", c.Shortcut)
	}
	if base < 1 || len(stages) == 0 {
		return fmt.Errorf("%d base channels and %d stages: both must be at least 1", base, len(stages))
	}
	for _, n := range stages {
		if n < 1 {
			return fmt.Errorf("a stage of %d blocks: must be at least 1", n)
		}
	}
	shrink := 1 << (len(stages) - 1)
	if c.Stem == "imagenet" {
		shrink *= 4
	}
	why := fmt.Sprintf("this form shrinks them %d times", shrink)
	if c.Stem == "imagenet" {
		why += " (a quarter of it with stem: small)"
	}
	return c.largerThan(shrink, why)
}

// stem is conv1, bn1, ReLU and, in the ImageNet form, a max-pool.
func stem(c Config, channels int) nn.Block {
	kernel, stride := 3, 1
	if c.Stem == "imagenet" {
		kernel, stride = 7, 2
	}
	s := &stemBlock{conv: newConv("conv1", c.Channels, channels, kernel, stride), norm: newNorm("bn1", channels)}
	if c.Stem == "imagenet" {
		s.pool = nn.NewMaxPool2d("maxpool", nn.PoolConfig{Window: nn.Square(3), Stride: nn.Square(2), Padding: nn.Square(1)})
	}
	return s
}

type stemBlock struct {
	conv *nn.Conv2d
	norm *nn.BatchNorm2d
	pool *nn.Pool2d // nil in the small form
}

func (s *stemBlock) Name() string { return "stem" }

func (s *stemBlock) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var {
	y := s.norm.Fused(t, s.conv.Forward(t, nn.Only("stem", in)), nil, device.ReLU)
	if s.pool != nil {
		wide := y
		y = s.pool.Forward(t, wide)
		t.Forget(wide)
	}
	return t.List(y)
}

func (s *stemBlock) Params() []*nn.Param { return append(s.conv.Params(), s.norm.Params()...) }

func (s *stemBlock) State() []nn.State { return s.norm.State() }

// newConv is a convolution without bias that keeps the size, up to the stride,
// and starts as He et al. 2015 with the fan of its output.
func newConv(name string, in, out, kernel, stride int) *nn.Conv2d {
	l := nn.NewConv2d(name, in, out, nn.Square(kernel), nn.ConvConfig{Stride: nn.Square(stride), Padding: nn.Square(kernel / 2)})
	l.Weight.Init = nn.KaimingNormal(out * kernel * kernel)
	return l
}

func newNorm(name string, channels int) *nn.BatchNorm2d {
	return nn.NewBatchNorm2d(name, channels, nn.BatchNormConfig{})
}
