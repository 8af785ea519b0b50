package models

import "github.com/gradfusion/gradfusion/nn"

// cnn is two 3 x 3 convolutions of 32 and 64 channels without padding, a
// max-pool, and linear layers of 128 and the classes, with ReLU between.
func cnn(c Config) ([]nn.Block, error) {
	if err := c.noResNet(); err != nil {
		return nil, err
	}
	if err := c.largerThan(6, "two 3 x 3 convolutions without padding and a 2 x 2 pool"); err != nil {
		return nil, err
	}
	hidden := c.Hidden
	if hidden == nil {
		hidden = []int{128}
	}
	conv := nn.ConvConfig{Bias: true}
	blocks := []nn.Block{
		nn.NewSeq("conv1", nn.NewConv2d("conv1", c.Channels, 32, nn.Square(3), conv), nn.ReLU{}),
		nn.NewSeq("conv2", nn.NewConv2d("conv2", 32, 64, nn.Square(3), conv), nn.ReLU{},
			nn.NewMaxPool2d("pool", nn.PoolConfig{Window: nn.Square(2)})),
	}
	features := 64 * ((c.Height - 4) / 2) * ((c.Width - 4) / 2)
	return c.linears(blocks, 1, features, hidden), nil
}
