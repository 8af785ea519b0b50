package optim

import (
	"fmt"
	"math"
	"slices"
)

// ScheduleConfig describes how the learning rate changes over a training run.
// A length is a share of Total when below 1, a number of steps otherwise.
type ScheduleConfig struct {
	Name       string    `yaml:"name"`   // see ScheduleNames; "" is constant
	Warmup     float64   `yaml:"warmup"` // length of the linear rise from 0 to Base; of onecycle's, where 0 is 0.3
	Gamma      float64   `yaml:"gamma"`  // step, multistep: the factor of each drop; 0 is 0.1
	StepSize   float64   `yaml:"step_size"`
	Milestones []float64 `yaml:"milestones"` // multistep: where the drops are, ascending
	Power      float64   `yaml:"power"`      // polynomial; 0 is 1
	Final      float64   `yaml:"final"`      // linear, cosine, polynomial, onecycle: the end, as a share of Base
	Start      float64   `yaml:"start"`      // onecycle: the beginning, as a share of Base; 0 is 0.04
	Base       float32   `yaml:"-"`          // the learning rate before any factor
	Total      int       `yaml:"-"`          // steps of the whole run; needed by lengths below 1 and by schedules that end
}

// Schedule gives the learning rate of each step: a pure function, so nothing of
// it needs saving. With w the steps of warm-up, T the total and s the step:
//
//	s < w:       Base * (s+1)/w, but for onecycle
//	constant:    Base
//	step:        Base * gamma^floor(s/step_size)
//	multistep:   Base * gamma^(milestones at or below s)
//	linear:      from Base to Base*final, straight, over p = (s-w)/(T-w)
//	polynomial:  the same with (1-p)^power
//	cosine:      the same with (1+cos(pi*p))/2 (Loshchilov, Hutter 2017)
//	onecycle:    from Base*start in the first step to Base in step w-1, then to
//	             Base*final in step T-1, both along half a cosine (Smith, Topin
//	             2018), as PyTorch has it, but with a momentum that stays: Adam's
//	             corrections presume that, and the rate does the most of it
//
// After the last step p stays 1.
type Schedule struct {
	config     ScheduleConfig
	warmup     int
	stepSize   int
	milestones []int
}

// ScheduleNames lists the schedules that NewSchedule knows.
func ScheduleNames() []string {
	return []string{"constant", "step", "multistep", "linear", "cosine", "polynomial", "onecycle"}
}

// NewSchedule checks c and returns its schedule.
func NewSchedule(c ScheduleConfig) (Schedule, error) {
	if c.Name == "" {
		c.Name = "constant"
	}
	if c.Gamma == 0 {
		c.Gamma = 0.1
	}
	if c.Power == 0 {
		c.Power = 1
	}
	if c.Start == 0 {
		c.Start = 0.04
	}
	if c.Name == "onecycle" && c.Warmup == 0 {
		c.Warmup = 0.3
	}
	if !slices.Contains(ScheduleNames(), c.Name) {
		return Schedule{}, unknown("schedule", c.Name, ScheduleNames())
	}
	if err := c.validate(); err != nil {
		return Schedule{}, fmt.Errorf("optim: schedule %s: %w", c.Name, err)
	}
	s := Schedule{config: c, warmup: c.steps(c.Warmup), stepSize: max(c.steps(c.StepSize), 1)}
	for _, m := range c.Milestones {
		s.milestones = append(s.milestones, c.steps(m))
	}
	return s, nil
}

func (c ScheduleConfig) validate() error {
	ends := c.Name == "linear" || c.Name == "cosine" || c.Name == "polynomial" || c.Name == "onecycle"
	shares := c.Warmup > 0 && c.Warmup < 1 || c.StepSize > 0 && c.StepSize < 1
	for _, m := range c.Milestones {
		shares = shares || m < 1
	}
	switch {
	case !finite(float64(c.Base)) || c.Base < 0:
		return fmt.Errorf("lr is %g, want at least 0", c.Base)
	case c.Total < 0 || c.Total == 0 && (ends || shares):
		return fmt.Errorf("the run has %d steps, want at least 1", c.Total)
	case !finite(c.Warmup) || c.Warmup < 0:
		return fmt.Errorf("warmup is %g, want a share below 1 or a number of steps", c.Warmup)
	case c.Total > 0 && c.steps(c.Warmup) > c.Total:
		return fmt.Errorf("warmup takes %d steps of a run of %d", c.steps(c.Warmup), c.Total)
	case !(c.Gamma > 0 && c.Gamma <= 1):
		return fmt.Errorf("gamma is %g, want above 0 and at most 1", c.Gamma)
	case c.Name == "step" && !(c.StepSize > 0 && finite(c.StepSize)):
		return fmt.Errorf("step_size is %g, want a share below 1 or a number of steps", c.StepSize)
	case c.Name == "multistep" && len(c.Milestones) == 0:
		return fmt.Errorf("milestones are missing, want shares below 1 or steps, such as [0.5, 0.75]")
	case !(c.Power > 0 && finite(c.Power)):
		return fmt.Errorf("power is %g, want above 0", c.Power)
	case !(c.Final >= 0 && c.Final <= 1):
		return fmt.Errorf("final is %g, want 0 to 1", c.Final)
	case !(c.Start > 0 && c.Start <= 1):
		return fmt.Errorf("start is %g, want above 0 and at most 1", c.Start)
	}
	before := 0.0
	for _, m := range c.Milestones {
		if !finite(m) || m <= 0 || float64(c.steps(m)) <= before {
			return fmt.Errorf("milestones %v do not ascend from above 0", c.Milestones)
		}
		before = float64(c.steps(m))
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// steps turns a length into steps.
func (c ScheduleConfig) steps(length float64) int {
	if length < 1 {
		length *= float64(c.Total)
	}
	return int(math.Round(min(length, 1<<40)))
}

// LR returns the learning rate of a step, 0 for the first.
func (s Schedule) LR(step int) float32 {
	return float32(float64(s.config.Base) * s.factor(step))
}

func (s Schedule) factor(step int) float64 {
	if s.config.Name == "onecycle" {
		return s.oneCycle(step)
	}
	if step < s.warmup {
		return float64(step+1) / float64(s.warmup)
	}
	c := s.config
	var left float64 // 1 at the start, 0 at the end
	switch p := s.progress(step); c.Name {
	case "step":
		return math.Pow(c.Gamma, float64(step/s.stepSize))
	case "multistep":
		passed, _ := slices.BinarySearch(s.milestones, step+1)
		return math.Pow(c.Gamma, float64(passed))
	case "linear":
		left = 1 - p
	case "polynomial":
		left = math.Pow(1-p, c.Power)
	case "cosine":
		left = (1 + math.Cos(math.Pi*p)) / 2
	default:
		return 1
	}
	return c.Final + float64((1-c.Final)*left)
}

func (s Schedule) progress(step int) float64 {
	if s.config.Total <= s.warmup {
		return 1
	}
	return min(float64(step-s.warmup)/float64(s.config.Total-s.warmup), 1)
}

func (s Schedule) oneCycle(step int) float64 {
	c, top := s.config, s.warmup-1
	from, to, p := 1.0, c.Final, 1.0
	switch last := c.Total - 1; {
	case step < top:
		from, to, p = c.Start, 1, float64(step)/float64(top)
	case step == top:
		return 1
	case step < last:
		p = float64(step-top) / float64(last-top)
	}
	return to + float64((from-to)*float64((1+math.Cos(math.Pi*p))/2))
}
