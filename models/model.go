package models

import (
	"errors"
	"fmt"

	"github.com/gradfusion/gradfusion/nn"
)

// Config names a model and its settings. What a model has no use for must be
// left zero.
type Config struct {
	Name                    string
	Channels, Height, Width int // of the images
	Classes                 int
	Vocabulary, Context     int // of the texts: different tokens, and tokens of a window

	// Stem of a ResNet of the ImageNet form: "" or "imagenet" is 7 x 7 with
	// stride 2 and a max-pool; "small", for images of about 32 x 32, is 3 x 3
	// without a pool.
	Stem string
	// Shortcut of a ResNet where the shape changes: "" or "B" is a 1 x 1
	// convolution with BatchNorm, "A" subsamples and pads with channels of
	// zeros, without parameters (He et al. 2016).
	Shortcut string
	// Stages overrides the residual blocks in each stage of a ResNet.
	Stages []int
	// BaseChannels overrides the channels of a ResNet's first stage.
	BaseChannels int
	// Hidden overrides the widths of the hidden linear layers of mlp and cnn.
	Hidden []int
	// Layers, Heads and Features override the blocks of gpt, its attention
	// heads, and the features of a token.
	Layers, Heads, Features int
	// SparseEmbedding gives gpt a matrix of its own for the logits, lm_head, so that
	// the gradient of its token embedding has the rows of a step's tokens only.
	SparseEmbedding bool
	// Dropout is the probability before the last layer; in mlp after each
	// hidden layer, in gpt after the embedding and in each block.
	Dropout float32
	// Partners, where there are several, share the layers of mlp and gpt: each
	// holds a part of their parameters.
	Partners nn.Partners
}

// Model is a network as a list of blocks.
type Model struct {
	Name                    string
	Blocks                  []nn.Block
	Channels, Height, Width int
	Classes                 int
	Vocabulary, Context     int // of a model that reads tokens; 0 for images
}

// New builds the model that c names. Its parameters have no memory yet: see
// nn.Materialize.
func New(c Config) (*Model, error) {
	model, err := find(c.Name)
	if err != nil {
		return nil, err
	}
	if err := c.check(model.text); err != nil {
		return nil, err
	}
	if c.Partners != nil {
		if err := c.Shares(c.Partners.Size()); err != nil {
			return nil, fmt.Errorf("model %s: %w", c.Name, err)
		}
	}
	blocks, err := model.build(c)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Name, err)
	}
	return &Model{c.Name, blocks, c.Channels, c.Height, c.Width, c.Classes, c.Vocabulary, c.Context}, nil
}

func (c Config) check(text bool) error {
	input := c.checkImages
	if text {
		input = c.checkText
	}
	if err := input(); err != nil {
		return fmt.Errorf("model %s: %w", c.Name, err)
	}
	if !(c.Dropout >= 0 && c.Dropout < 1) {
		return fmt.Errorf("model %s: dropout %g is outside of [0, 1)", c.Name, c.Dropout)
	}
	for _, n := range c.Hidden {
		if n < 1 {
			return fmt.Errorf("model %s: a hidden layer of %d: must be at least 1", c.Name, n)
		}
	}
	return nil
}

// checkText is for models that read tokens.
func (c Config) checkText() error {
	switch {
	case c.Channels != 0 || c.Height != 0 || c.Width != 0 || c.Classes != 0:
		return errors.New("it reads tokens, and no images")
	case c.Vocabulary < 1 || c.Context < 1:
		return fmt.Errorf("windows of %d tokens of a vocabulary of %d: both must be at least 1", c.Context, c.Vocabulary)
	}
	return nil
}

// checkImages is for all other models.
func (c Config) checkImages() error {
	switch {
	case c.Vocabulary != 0 || c.Context != 0:
		return errors.New("it reads images, and no tokens")
	case c.Channels < 1 || c.Height < 1 || c.Width < 1:
		return fmt.Errorf("images of %d x %d x %d (channels, height, width): all must be at least 1", c.Channels, c.Height, c.Width)
	case c.Layers != 0 || c.Heads != 0 || c.Features != 0:
		return errors.New("layers, heads and features are settings of gpt")
	case c.Classes < 1:
		return fmt.Errorf("%d classes: must be at least 1", c.Classes)
	}
	return nil
}

// largerThan refuses images smaller than least on a side.
func (c Config) largerThan(least int, why string) error {
	if c.Height < least || c.Width < least {
		return fmt.Errorf("images of %d x %d are too small: %s, so %d x %d is the least", c.Height, c.Width, why, least, least)
	}
	return nil
}

// Input is the shape of a batch of n samples: images (F32), or windows of
// tokens (I32).
func (m *Model) Input(n int) nn.Shape {
	if m.Context > 0 {
		return nn.Plain(n, m.Context)
	}
	return nn.Plain(n, m.Channels, m.Height, m.Width)
}

// Params lists the parameters in order of first use.
func (m *Model) Params() []*nn.Param { return nn.Params(m.Blocks) }

// ParamCount returns the number of trainable values, those of partners included.
func (m *Model) ParamCount() int {
	n := 0
	for _, p := range m.Params() {
		n += p.WholeLen()
	}
	return n
}
