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
	return c.linears(nil, 1, c.Channels*c.Height*c.Width, c.hiddenLayers()), nil
}

// hiddenLayers returns the widths of an mlp's.
func (c Config) hiddenLayers() []int {
	if c.Hidden == nil {
		return []int{1024, 1024}
	}
	return c.Hidden
}

// linears appends a block for each hidden layer and the head. The layers are
// called fc1, fc2 and so on, from first. Partners share the outputs of the first
// layer, the inputs of the second, the outputs of the third and so on; with them
// the last layer's outputs are logits of some classes, or of all.
func (c Config) linears(blocks []nn.Block, first, in int, hidden []int) []nn.Block {
	inputs := false // of the layer are cut
	next := func(name string, in, out int) *nn.Linear {
		l := nn.NewLinear(name, in, out, nn.LinearConfig{Cut: nn.Cut{Partners: c.Partners, Inputs: inputs}})
		inputs = !inputs
		return l
	}
	for i, out := range hidden {
		name := fmt.Sprintf("fc%d", first+i)
		l := next(name, in, out)
		blocks = append(blocks, nn.NewSeq(name,
			nn.Flatten{Name: name}, l, nn.ReLU{}, nn.Dropout{Name: name + ".dropout", P: c.Dropout, Part: l.OutputPart()}))
		in = out
	}
	name := fmt.Sprintf("fc%d", first+len(hidden))
	return append(blocks, nn.NewSeq("head", nn.Flatten{Name: name}, next(name, in, c.Classes)))
}

// noResNet refuses the settings that only ResNets have.
func (c Config) noResNet() error {
	if c.Stem != "" || c.Shortcut != "" || c.Stages != nil || c.BaseChannels != 0 {
		return errors.New("stem, shortcut, stages and base channels are settings of ResNets")
	}
	return nil
}
