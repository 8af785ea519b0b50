package amp

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// A step is a letter: . is good, x overflows.
func TestScaler(t *testing.T) {
	for name, c := range map[string]struct {
		config  ScalerConfig
		steps   string
		scale   float64
		skipped int
		stuck   int
		fails   bool
	}{
		"initial":            {ScalerConfig{}, "", 1 << 16, 0, 0, false},
		"halves":             {ScalerConfig{}, "x", 1 << 15, 1, 0, false},
		"halves twice":       {ScalerConfig{}, "x.x", 1 << 14, 2, 0, false},
		"doubles":            {ScalerConfig{Interval: 3}, "...", 1 << 17, 0, 0, false},
		"counts in a row":    {ScalerConfig{Interval: 3}, "..x..", 1 << 15, 1, 0, false},
		"doubles again":      {ScalerConfig{Interval: 2}, ".....", 1 << 18, 0, 0, false},
		"ceiling":            {ScalerConfig{Interval: 1, Ceiling: 1 << 17}, "....", 1 << 17, 0, 0, false},
		"starts above":       {ScalerConfig{Interval: 1, Initial: 8, Ceiling: 4}, "..", 8, 0, 0, false},
		"floor":              {ScalerConfig{Initial: 2}, "xxx", 1, 3, 2, false},
		"odd floor":          {ScalerConfig{Initial: 5, Floor: 2}, "xx", 2, 2, 0, false},
		"leaves the floor":   {ScalerConfig{Initial: 1, Interval: 2}, "xx..", 2, 2, 0, false},
		"patience":           {ScalerConfig{Initial: 1, Patience: 3}, "xxx", 1, 3, 3, true},
		"patience in a row":  {ScalerConfig{Initial: 1, Patience: 3}, "xx.xx", 1, 4, 2, false},
		"fixed":              {ScalerConfig{Fixed: 100, Interval: 1}, "..x.", 100, 1, 0, false},
		"fixed, no patience": {ScalerConfig{Fixed: 100, Patience: 2}, "xx", 100, 2, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewScaler(c.config)
			stuck, err := 0, error(nil)
			for _, step := range c.steps {
				require.NoError(t, err)
				stuck, err = s.Done(step == 'x')
			}
			require.Equal(t, c.scale, s.Scale())
			require.Equal(t, c.skipped, s.Skipped())
			require.Equal(t, c.stuck, stuck)
			if c.fails {
				require.ErrorIs(t, err, ErrOverflow)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestScalerDefaults(t *testing.T) {
	s := NewScaler(ScalerConfig{})
	for range 1999 {
		s.Done(false)
	}
	require.Equal(t, 65536.0, s.Scale())
	s.Done(false)
	require.Equal(t, 131072.0, s.Scale())
}

func TestScalerContinues(t *testing.T) {
	config := ScalerConfig{Interval: 3, Initial: 4, Patience: 4}
	const steps = "..x.xxx...x...xx"
	for cut := range len(steps) {
		whole, first, second := NewScaler(config), NewScaler(config), NewScaler(config)
		for i := range len(steps) {
			if i == cut {
				require.NoError(t, second.Restore(first.State()))
				first = second
			}
			whole.Done(steps[i] == 'x')
			first.Done(steps[i] == 'x')
		}
		require.Equal(t, whole.State(), first.State())
	}
}

func TestScalerRefusesAState(t *testing.T) {
	good := [StateLen]float64{1024, 3, 2, 0}
	require.NoError(t, NewScaler(ScalerConfig{}).Restore(good))
	for i, values := range [][]float64{{0, -1, math.NaN(), math.Inf(1)}, {-1, 0.5, math.NaN(), math.Inf(1)}, {-1}, {-1}} {
		for _, v := range values {
			bad := good
			bad[i] = v
			s := NewScaler(ScalerConfig{})
			require.Error(t, s.Restore(bad), "%v", bad)
			require.Equal(t, NewScaler(ScalerConfig{}).State(), s.State())
		}
	}
	fixed := NewScaler(ScalerConfig{Fixed: 8})
	require.NoError(t, fixed.Restore(good))
	require.Equal(t, [StateLen]float64{8, 3, 2, 0}, fixed.State())
}

func TestLevels(t *testing.T) {
	for name, want := range map[string]struct {
		config    Config
		precision nn.Precision
		masters   device.Type
	}{
		"O0":      {Config{}, nn.Precision{}, device.F32},
		"O0 bf16": {Config{BF16: true, RoundNorms: true}, nn.Precision{}, device.F32},
		"O1":      {Config{Level: O1, RoundNorms: true}, nn.Precision{Type: device.F16, Products: true}, device.F32},
		"O2":      {Config{Level: O2}, nn.Precision{Type: device.F16}, device.F32},
		"O2 bf16": {Config{Level: O2, BF16: true, RoundNorms: true}, nn.Precision{Type: device.BF16, Norms: true}, device.F32},
		"O3":      {Config{Level: O3}, nn.Precision{Type: device.F16}, device.F16},
	} {
		require.Equal(t, want.precision, want.config.Precision(), name)
		require.Equal(t, want.masters, want.config.Masters(), name)
		require.Equal(t, want.config.Level == O0, want.config.Scaler() == nil, name)
	}
	for l := O0; l <= O3; l++ {
		got, err := ParseLevel(l.String())
		require.NoError(t, err)
		require.Equal(t, l, got)
	}
	_, err := ParseLevel("O4")
	require.EqualError(t, err, `unknown level "O4" of mixed precision (known: O0 O1 O2 O3)`)
}
