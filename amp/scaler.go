package amp

import (
	"errors"
	"fmt"
)

// ScalerConfig holds the numbers of a loss scale; the zero value is dynamic, as
// apex and PyTorch have it (Micikevicius et al., 2018).
type ScalerConfig struct {
	Fixed    float64 // a scale that never changes; 0: dynamic
	Initial  float64 // 0 means 2^16
	Interval int     // good steps in a row after which the scale doubles; 0 means 2000
	Floor    float64 // the scale is never halved below; 0 means 1
	Ceiling  float64 // and never doubled above; 0 means 2^24
	// Patience is how many steps in a row may overflow where halving does not
	// help, because the scale is fixed or at its floor; 0 means 25.
	Patience int
}

func (c ScalerConfig) withDefaults() ScalerConfig {
	or := func(v *float64, otherwise float64) {
		if *v == 0 {
			*v = otherwise
		}
	}
	or(&c.Initial, 1<<16)
	or(&c.Floor, 1)
	or(&c.Ceiling, 1<<24)
	if c.Interval == 0 {
		c.Interval = 2000
	}
	if c.Patience == 0 {
		c.Patience = 25
	}
	return c
}

// ErrOverflow is what Done returns when a smaller scale cannot help any more.
var ErrOverflow = errors.New("the gradients overflow whatever the loss scale")

// Scaler is the factor by which losses are multiplied before the backward pass.
// After a step with a gradient that is no finite number it is halved and the
// step is skipped; after Interval good steps in a row it doubles. All ranks that
// share a step have equal Scalers, because they agree on what is an overflow. It
// is used by one goroutine.
type Scaler struct {
	cfg ScalerConfig

	scale   float64
	good    int // steps in a row since the last overflow or doubling
	skipped int // steps in all
	stuck   int // overflows in a row that could not halve the scale
}

// NewScaler returns the scaler of a training that begins.
func NewScaler(c ScalerConfig) *Scaler {
	c = c.withDefaults()
	s := &Scaler{cfg: c, scale: c.Initial}
	if c.Fixed != 0 {
		s.scale = c.Fixed
	}
	return s
}

// Scale is the factor of the present step.
func (s *Scaler) Scale() float64 { return s.scale }

// Skipped is how many steps overflowed.
func (s *Scaler) Skipped() int { return s.skipped }

// Done ends a step. After an overflow that no smaller scale was left for,
// Patience times in a row, it returns ErrOverflow, wrapped with the scale; until
// then stuck reports how many such overflows there were in a row.
func (s *Scaler) Done(overflow bool) (stuck int, err error) {
	if !overflow {
		s.stuck = 0
		if s.good++; s.good >= s.cfg.Interval && s.cfg.Fixed == 0 {
			s.good = 0
			s.scale = max(s.scale, min(s.scale*2, s.cfg.Ceiling))
		}
		return 0, nil
	}
	s.good = 0
	s.skipped++
	if s.cfg.Fixed == 0 && s.scale > s.cfg.Floor {
		s.scale = max(s.scale/2, s.cfg.Floor)
		return 0, nil
	}
	if s.stuck++; s.stuck < s.cfg.Patience {
		return s.stuck, nil
	}
	return s.stuck, fmt.Errorf("%w: %d steps in a row at a loss scale of %g", ErrOverflow, s.stuck, s.scale)
}

// StateLen is the length of State.
const StateLen = 4

// State returns all that a checkpoint needs.
func (s *Scaler) State() [StateLen]float64 {
	return [StateLen]float64{s.scale, float64(s.good), float64(s.skipped), float64(s.stuck)}
}

// Restore continues from a State. The scale of a fixed one stays as configured.
func (s *Scaler) Restore(state [StateLen]float64) error {
	scale := state[0]
	if !(scale > 0) || scale > 1e30 {
		return fmt.Errorf("a loss scale of %v is none", scale)
	}
	for i, v := range state[1:] {
		if !(v >= 0) || v > 1<<53 || v != float64(int64(v)) {
			return fmt.Errorf("number %d of a loss scale's state is %v, which is no count", i+2, v)
		}
	}
	if s.cfg.Fixed == 0 {
		s.scale = scale
	}
	s.good, s.skipped, s.stuck = int(state[1]), int(state[2]), int(state[3])
	return nil
}
