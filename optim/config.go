package optim

import (
	"fmt"
	"math"
)

// Config chooses an optimizer. Zero fields have PyTorch's defaults, but for
// weight decay, where zero is none for AdamW too.
type Config struct {
	Name                string  `yaml:"name"`     // see Names; "" is momentum
	Momentum            float32 `yaml:"momentum"` // of momentum, nesterov, lars, where 0 is 0.9, and rmsprop
	Dampening           float32 `yaml:"dampening"`
	Beta1               float32 `yaml:"beta1"`   // 0 is 0.9
	Beta2               float32 `yaml:"beta2"`   // 0 is 0.999
	Alpha               float32 `yaml:"alpha"`   // of rmsprop: decay of the mean square; 0 is 0.99
	Trust               float32 `yaml:"trust"`   // of lars: the size of an update beside the weights; 0 is 0.001
	Epsilon             float32 `yaml:"epsilon"` // 0 is 1e-8; of adagrad 1e-10, of lamb 1e-6
	WeightDecay         float32 `yaml:"weight_decay"`
	DecayNormsAndBiases bool    `yaml:"decay_norms_and_biases"`
	Groups              []Rule  `yaml:"groups"` // the first rule that matches a parameter holds
	// Lazy updates of a table with a sparse gradient only the rows that have one
	// in this step; see doc.go.
	Lazy bool `yaml:"lazy"`
}

// New returns the optimizer that c describes, before Init. A setting out of
// range, or a name that is not known, is an error that says so.
func New(c Config) (Optimizer, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("optim: %w", err)
	}
	switch c.Name {
	case "sgd":
		c.Momentum = 0
		return &sgd{config: c}, nil
	case "momentum":
		return &sgd{config: c}, nil
	case "nesterov":
		return &sgd{config: c, nesterov: true}, nil
	case "adam":
		return &adam{config: c}, nil
	case "adamw":
		return &adam{config: c, decoupled: true}, nil
	case "rmsprop":
		return &rmsProp{config: c}, nil
	case "adagrad":
		return &adaGrad{config: c}, nil
	case "lars":
		return &lars{config: c}, nil
	case "lamb":
		return &lamb{config: c}, nil
	}
	return nil, unknown("optimizer", c.Name, Names())
}

// Names lists the optimizers that New knows.
func Names() []string {
	return []string{"sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", "adagrad", "lars", "lamb"}
}

func (c Config) withDefaults() Config {
	defaulted := func(v *float32, d float32) {
		if *v == 0 {
			*v = d
		}
	}
	if c.Name == "" {
		c.Name = "momentum"
	}
	if c.Name != "rmsprop" {
		defaulted(&c.Momentum, 0.9)
	}
	defaulted(&c.Beta1, 0.9)
	defaulted(&c.Beta2, 0.999)
	defaulted(&c.Alpha, 0.99)
	defaulted(&c.Trust, 0.001)
	defaulted(&c.Epsilon, epsilon(c.Name))
	return c
}

// epsilon is the default of PyTorch, or of the paper.
func epsilon(name string) float32 {
	switch name {
	case "adagrad":
		return 1e-10
	case "lamb":
		return 1e-6
	}
	return 1e-8
}

func (c Config) validate() error {
	for _, s := range []struct {
		name  string
		value float32
		below float64 // exclusive
	}{
		{"momentum", c.Momentum, 1},
		{"beta1", c.Beta1, 1},
		{"beta2", c.Beta2, 1},
		{"alpha", c.Alpha, 1},
		{"trust", c.Trust, math.Inf(1)},
		{"epsilon", c.Epsilon, math.Inf(1)},
		{"weight_decay", c.WeightDecay, math.Inf(1)},
	} {
		if !(s.value >= 0 && float64(s.value) < s.below) {
			return fmt.Errorf("%s is %g, want at least 0 and below %g", s.name, s.value, s.below)
		}
	}
	if !(c.Dampening >= 0 && c.Dampening <= 1) {
		return fmt.Errorf("dampening is %g, want 0 to 1", c.Dampening)
	}
	if c.Lazy && (c.Name == "lars" || c.Name == "lamb") {
		return fmt.Errorf("%s scales a parameter by norms of all its rows, so it cannot be lazy about some", c.Name)
	}
	if c.Name == "nesterov" && c.Dampening != 0 {
		return fmt.Errorf("nesterov has no dampening, but dampening is %g", c.Dampening)
	}
	for i, r := range c.Groups {
		if err := r.validate(); err != nil {
			return fmt.Errorf("group %d: %w", i+1, err)
		}
	}
	return nil
}
