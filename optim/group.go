package optim

import (
	"fmt"
	"math"
	"path"

	"github.com/gradfusion/gradfusion/nn"
)

// Group is the settings of one parameter.
type Group struct {
	LRFactor    float32 // multiplies the learning rate
	WeightDecay float32
}

// Rule gives the parameters whose names match a pattern settings of their own.
type Rule struct {
	Match       string   `yaml:"match"`        // as path.Match has it: "layer1.*", "*.bias"
	LRFactor    *float32 `yaml:"lr_factor"`    // nil leaves the rate as it is
	WeightDecay *float32 `yaml:"weight_decay"` // holds for biases and norms too; nil leaves it
}

// Group returns the settings of p: a function of its name and its Decay flag
// only, so every rank of every layout finds the same.
func (c Config) Group(p *nn.Param) Group {
	g := Group{LRFactor: 1}
	if p.Decay || c.DecayNormsAndBiases {
		g.WeightDecay = c.WeightDecay
	}
	for _, r := range c.Groups {
		if ok, _ := path.Match(r.Match, p.Name); !ok {
			continue
		}
		if r.LRFactor != nil {
			g.LRFactor = *r.LRFactor
		}
		if r.WeightDecay != nil {
			g.WeightDecay = *r.WeightDecay
		}
		break
	}
	return g
}

// Groups returns the group of each parameter, in order, and an error when a
// rule of c matches none of them, which is a misspelling more often than not.
// A rank that holds a part of the model passes the parameters of all of it.
func Groups(params []*nn.Param, c Config) ([]Group, error) {
	out := make([]Group, len(params))
	for i, p := range params {
		out[i] = c.Group(p)
	}
	for i, r := range c.Groups {
		used := false
		for _, p := range params {
			ok, err := path.Match(r.Match, p.Name)
			if err != nil {
				return nil, fmt.Errorf("optim: group %d: %w", i+1, r.validate())
			}
			used = used || ok
		}
		if !used {
			return nil, fmt.Errorf("optim: group %d: no parameter is called %s", i+1, r.Match)
		}
	}
	return out, nil
}

func (r Rule) validate() error {
	if _, err := path.Match(r.Match, ""); err != nil || r.Match == "" {
		return fmt.Errorf("match is %q, want a pattern of parameter names such as layer1.* or *.bias", r.Match)
	}
	if f := r.LRFactor; f != nil && !(*f >= 0 && !math.IsInf(float64(*f), 0)) {
		return fmt.Errorf("lr_factor is %g, want at least 0", *f)
	}
	if d := r.WeightDecay; d != nil && !(*d >= 0 && !math.IsInf(float64(*d), 0)) {
		return fmt.Errorf("weight_decay is %g, want at least 0", *d)
	}
	return nil
}
