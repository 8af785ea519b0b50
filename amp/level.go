package amp

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// Level says how much has 16 bits.
type Level uint8

// The levels.
const (
	// O0 is float32 throughout.
	O0 Level = iota
	// O1 lets Linear, Conv2d and Attention read inputs and weights of 16 bits and
	// give 16 bits; norms, embeddings and losses give float32, and what only
	// moves or maps elements keeps the type of its input. Masters are float32.
	O1
	// O2 keeps all activations and their gradients in 16 bits, and weights while
	// they are read. Masters, statistics and parameters of norms, the inside of
	// losses, and gradients of parameters are float32.
	O2
	// O3 is O2 without masters: an updated weight is rounded to 16 bits at once.
	O3
)

func (l Level) String() string { return fmt.Sprintf("O%d", uint8(l)) }

// ParseLevel reads a level's name, as String prints it.
func ParseLevel(name string) (Level, error) {
	for l := O0; l <= O3; l++ {
		if l.String() == name {
			return l, nil
		}
	}
	return 0, fmt.Errorf("unknown level %q of mixed precision (known: O0 O1 O2 O3)", name)
}

// Config is what a training does in 16 bits. The zero value is nothing.
type Config struct {
	Level Level
	// BF16 takes BF16 instead of F16: the range of float32, and 8 instead of 11
	// significant bits.
	BF16 bool
	// LossScale is a fixed factor; 0 makes it dynamic.
	LossScale float64
	// RoundNorms also rounds the scales and shifts of norms at O2 and O3, which
	// otherwise stay float32. Statistics stay so in any case.
	RoundNorms bool
}

// Type is the type of 16 bits, or F32 at O0.
func (c Config) Type() device.Type {
	switch {
	case c.Level == O0:
		return device.F32
	case c.BF16:
		return device.BF16
	}
	return device.F16
}

// Precision is what every pass gets.
func (c Config) Precision() nn.Precision {
	return nn.Precision{Type: c.Type(), Products: c.Level == O1, Norms: c.Level >= O2 && c.RoundNorms}
}

// Masters is the type whose numbers masters hold: F32 unless there are none.
func (c Config) Masters() device.Type {
	if c.Level == O3 {
		return c.Type()
	}
	return device.F32
}

// Scaler returns the loss scale of a training that begins, or nil at O0.
func (c Config) Scaler() *Scaler {
	if c.Level == O0 {
		return nil
	}
	return NewScaler(ScalerConfig{Fixed: c.LossScale})
}
