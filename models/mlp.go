package models

import (
	"errors"
	"fmt"

	"github.com/gradfusion/gradfusion/nn"
)

// mlp is linear layers with ReLU between: 1024, 1024 and the classes.
func mlp(c Config) ([]nn.Block, error) {
	if err := c.noResNet(); err != nil {
		return nil, err
	}
	hidden := c.Hidden
	if hidden == nil {
		hidden = []int{1024, 1024}
	}
	return c.linears(nil, 1, c.Channels*c.Height*c.Width, hidden), nil
}

// linears appends a block for each hidden layer and the head. The layers are
// called fc1, fc2 and so on, from first.
func (c Config) linears(blocks []nn.Block, first, in int, hidden []int) []nn.Block {
	for i, out := range hidden {
		name := fmt.Sprintf("fc%d", first+i)
		blocks = append(blocks, nn.NewSeq(name,
			nn.Flatten{Name: name}, nn.NewLinear(name, in, out, nn.LinearConfig{}), nn.ReLU{},
			nn.Dropout{Name: name + ".dropout", P: c.Dropout}))
		in = out
	}
	name := fmt.Sprintf("fc%d", first+len(hidden))
	return append(blocks, nn.NewSeq("head", nn.Flatten{Name: name}, nn.NewLinear(name, in, c.Classes, nn.LinearConfig{})))
}

// noResNet refuses the settings that only ResNets have.
func (c Config) noResNet() error {
	if c.Stem != "" || c.Shortcut != "" || c.Stages != nil || c.BaseChannels != 0 {
		return errors.New("stem, shortcut, stages and base channels are settings of ResNets")
	}
	return nil
}
