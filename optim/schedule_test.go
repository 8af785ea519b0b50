package optim

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSchedulesAreGolden(t *testing.T) {
	var text strings.Builder
	for _, c := range []ScheduleConfig{
		{Name: "constant"},
		{Name: "constant", Warmup: 4},
		{Name: "step", StepSize: 6},
		{Name: "multistep", Milestones: []float64{0.5, 15}, Gamma: 0.5, Warmup: 0.1},
		{Name: "linear", Warmup: 0.2},
		{Name: "cosine", Warmup: 0.05},
		{Name: "cosine", Warmup: 5, Final: 0.125},
		{Name: "polynomial", Power: 2, Warmup: 0.1},
		{Name: "onecycle"},
		{Name: "onecycle", Warmup: 10, Start: 0.5, Final: 0.25},
	} {
		c.Base, c.Total = 0.5, 20
		s, err := NewSchedule(c)
		require.NoError(t, err)
		fmt.Fprintf(&text, "%s warmup=%g final=%g\n", c.Name, c.Warmup, c.Final)
		for step := range c.Total + 2 {
			fmt.Fprintf(&text, " %.6f", s.LR(step))
		}
		fmt.Fprintln(&text)
	}
	golden(t, "schedules.golden", text.String())
}

func TestScheduleProperties(t *testing.T) {
	for _, name := range ScheduleNames() {
		for _, warmup := range []float64{0, 0.05, 0.5, 3} {
			s, err := NewSchedule(ScheduleConfig{Name: name, Warmup: warmup, StepSize: 0.9, Milestones: []float64{0.75}, Base: 0.3, Total: 100})
			require.NoError(t, err)
			rise := s.warmup
			for step := range 200 {
				lr := s.LR(step)
				require.True(t, lr >= 0 && lr <= 0.3, "%s: step %d: %g", name, step, lr)
				if step > 0 && step < rise {
					require.Greater(t, lr, s.LR(step-1), name)
				}
				if step > rise {
					require.LessOrEqual(t, lr, s.LR(step-1))
				}
			}
			require.Equal(t, float32(0.3), s.LR(max(rise-1, 0)), "%s with warm-up %g", name, warmup)
			if name != "step" {
				require.Equal(t, s.LR(100), s.LR(1000), "%s stays at its end", name)
			}
		}
	}
}

// The whole run may be warm-up; then the rate stays at Base.
func TestScheduleOfWarmupOnly(t *testing.T) {
	s, err := NewSchedule(ScheduleConfig{Warmup: 10, Base: 1, Total: 10})
	require.NoError(t, err)
	require.Equal(t, float32(1), s.LR(9))
	require.Equal(t, float32(1), s.LR(10))
}

func TestNewScheduleRefuses(t *testing.T) {
	for want, c := range map[string]ScheduleConfig{
		`optim: unknown schedule "cosin"; did you mean cosine? (known: constant step multistep linear cosine polynomial onecycle)`: {Name: "cosin"},
		"optim: schedule constant: lr is -1, want at least 0":                                                                      {Base: -1},
		"optim: schedule constant: lr is NaN, want at least 0":                                                                     {Base: float32(math.NaN())},
		"optim: schedule cosine: the run has 0 steps, want at least 1":                                                             {Name: "cosine"},
		"optim: schedule constant: the run has 0 steps, want at least 1":                                                           {Warmup: 0.5},
		"optim: schedule constant: warmup is -1, want a share below 1 or a number of steps":                                        {Warmup: -1},
		"optim: schedule constant: warmup takes 11 steps of a run of 10":                                                           {Warmup: 11, Total: 10},
		"optim: schedule step: gamma is 2, want above 0 and at most 1":                                                             {Name: "step", Gamma: 2, StepSize: 1},
		"optim: schedule step: step_size is 0, want a share below 1 or a number of steps":                                          {Name: "step"},
		"optim: schedule multistep: milestones are missing, want shares below 1 or steps, such as [0.5, 0.75]":                     {Name: "multistep"},
		"optim: schedule multistep: milestones [8 0.5] do not ascend from above 0":                                                 {Name: "multistep", Milestones: []float64{8, 0.5}, Total: 10},
		"optim: schedule polynomial: power is -1, want above 0":                                                                    {Name: "polynomial", Power: -1, Total: 10},
		"optim: schedule onecycle: start is 2, want above 0 and at most 1":                                                         {Name: "onecycle", Start: 2, Total: 10},
		"optim: schedule linear: final is 2, want 0 to 1":                                                                          {Name: "linear", Final: 2, Total: 10},
	} {
		_, err := NewSchedule(c)
		require.EqualError(t, err, want)
	}
}

// The numbers are those of torch.optim.lr_scheduler.OneCycleLR(max_lr=0.5,
// total_steps=20, pct_start=0.3) of PyTorch 1.13, whose last rate is 1/25/1e4 of
// the largest.
func TestOneCycleAgreesWithPyTorch(t *testing.T) {
	s, err := NewSchedule(ScheduleConfig{Name: "onecycle", Base: 0.5, Total: 20, Final: 4e-6})
	require.NoError(t, err)
	for step, want := range []float64{
		0.02, 0.0658359214, 0.185835921, 0.334164079, 0.454164079, 0.5, 0.493732003, 0.475242316, 0.445458089, 0.405872827,
		0.358471501, 0.305631011, 0.250001, 0.194370989, 0.141530499, 0.094129173, 0.0545439112, 0.024759684, 0.00626999688, 2e-06,
	} {
		require.InDelta(t, want, s.LR(step), 1e-7, "step %d", step) // PyTorch's are float64, ours are rounded to float32
	}
}
