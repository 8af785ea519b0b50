package optim

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
)

// The same numbers stand in testdata/torch_trajectories.py.
const (
	steps   = 20
	decayed = 5
	other   = 3
)

func rate(step int) float32 { return float32(0.1 / float64(step)) }

func startAt(i, shift int) float32 { return float32((5*i+shift)%7-3) / 4 }

func gradientAt(step, i, shift int) float32 { return float32((7*step+3*i+shift)%11-5) / 8 }

var trajectories = []struct {
	name   string
	config Config
}{
	{"sgd", Config{Name: "sgd"}},
	{"sgd decay", Config{Name: "sgd", WeightDecay: 0.0625}},
	{"momentum", Config{Name: "momentum", WeightDecay: 0.0625}},
	{"momentum dampening", Config{Name: "momentum", Momentum: 0.75, Dampening: 0.5}},
	{"nesterov", Config{Name: "nesterov", WeightDecay: 0.0625}},
	{"adam", Config{Name: "adam"}},
	{"adam decay", Config{Name: "adam", Beta1: 0.8, Beta2: 0.95, Epsilon: 1e-6, WeightDecay: 0.0625}},
	{"adamw", Config{Name: "adamw", WeightDecay: 0.0625}},
	{"rmsprop", Config{Name: "rmsprop"}},
	{"rmsprop momentum", Config{Name: "rmsprop", Alpha: 0.9, Epsilon: 1e-6, Momentum: 0.5, WeightDecay: 0.0625}},
	{"adagrad", Config{Name: "adagrad"}},
	{"adagrad decay", Config{Name: "adagrad", Epsilon: 1e-6, WeightDecay: 0.0625}},
	{"lars", Config{Name: "lars", Trust: 0.25, WeightDecay: 0.0625}}, // PyTorch has none of these
	{"lars momentum", Config{Name: "lars", Trust: 0.5, Momentum: 0.5}},
	{"lamb", Config{Name: "lamb", WeightDecay: 0.0625}},
	{"lamb betas", Config{Name: "lamb", Beta1: 0.8, Beta2: 0.95, Epsilon: 1e-5}},
}

// trajectory returns the values of both parameters after each step.
func trajectory(t *testing.T, dev device.Device, c Config) [][]float32 {
	t.Helper()
	a, b := param(t, "weight", decayed, true), param(t, "bias", other, false)
	for i := range a.Value.F32() {
		a.Value.F32()[i] = startAt(i, 1)
	}
	for i := range b.Value.F32() {
		b.Value.F32()[i] = startAt(i, 4)
	}
	segments := []Segment{
		{Param: a, Hi: decayed, Grad: device.FromF32(make([]float32, decayed))},
		{Param: b, Hi: other, Grad: device.FromF32(make([]float32, other))},
	}
	o, err := New(c)
	require.NoError(t, err)
	require.NoError(t, o.Init(dev, segments))
	var out [][]float32
	for step := 1; step <= steps; step++ {
		// scale 4 takes back the quarter: both are exact.
		for i := range segments[0].Grad.F32() {
			segments[0].Grad.F32()[i] = gradientAt(step, i, 0) / 4
		}
		for i := range segments[1].Grad.F32() {
			segments[1].Grad.F32()[i] = gradientAt(step, i, 2) / 4
		}
		require.NoError(t, o.Update(step, segments, rate(step), 4))
		out = append(out, append(append([]float32{}, a.Value.F32()...), b.Value.F32()...))
	}
	return out
}

func TestTrajectoriesAreGolden(t *testing.T) {
	var text strings.Builder
	for _, c := range trajectories {
		fmt.Fprintln(&text, c.name)
		for _, values := range trajectory(t, naive.New(), c.config) {
			for _, v := range values {
				fmt.Fprintf(&text, " %08x", math.Float32bits(v))
			}
			fmt.Fprintln(&text)
		}
	}
	golden(t, "trajectories.golden", text.String())
}

// A step rounds a value fewer than ten times, each by at most 2^-24 of numbers
// no larger than 2, so 20 steps stay within 20 x 10 x 2 x 2^-24 = 2.4e-5 even if
// all roundings pointed the same way; they do not, and a tenth of that is used.
const trajectoryBound = 2.4e-6

func TestTrajectoriesAgreeWithPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/torch_trajectories.json")
	require.NoError(t, err)
	var torch map[string][][]float64
	require.NoError(t, json.Unmarshal(text, &torch))
	for _, dev := range devices(t) {
		for _, c := range trajectories {
			if c.config.Name == "lars" || c.config.Name == "lamb" {
				continue
			}
			require.Contains(t, torch, c.name)
			near(t, torch[c.name], trajectory(t, dev, c.config), dev.Name()+", "+c.name)
		}
	}
}

func TestTrajectoriesAgreeWithTwin(t *testing.T) {
	for _, dev := range devices(t) {
		for _, c := range trajectories {
			near(t, twinTrajectory(c.config.withDefaults()), trajectory(t, dev, c.config), dev.Name()+", "+c.name)
		}
	}
}

func near(t *testing.T, want [][]float64, got [][]float32, what string) {
	t.Helper()
	for s, values := range got {
		for i, v := range values {
			require.InDelta(t, want[s][i], v, trajectoryBound, "%s: step %d, element %d", what, s+1, i)
		}
	}
}

// twin is one element under one optimizer, in float64, written from the papers'
// formulas.
type twin struct {
	c                Config
	w, m, mean, vari float64
	decay            float64
	d                float64 // lamb: the direction
}

// groupStep steps the elements of one parameter, adapted when it decays.
func groupStep(x []twin, adapted bool, t int, g []float64, lr float64) {
	ratio, w, d := 1.0, 0.0, 0.0
	for i := range x {
		w += x[i].w * x[i].w
		d += g[i] * g[i]
	}
	c := x[0].c
	switch c.Name {
	case "lars":
		if adapted {
			ratio = float64(c.Trust) * math.Sqrt(w) / (math.Sqrt(d) + x[0].decay*math.Sqrt(w))
		}
		for i := range x {
			x[i].m = float64(c.Momentum)*x[i].m + lr*ratio*(g[i]+x[i].decay*x[i].w)
			x[i].w -= x[i].m
		}
	case "lamb":
		b1, b2, d := float64(c.Beta1), float64(c.Beta2), 0.0
		for i := range x {
			e := &x[i]
			e.mean, e.vari = b1*e.mean+(1-b1)*g[i], b2*e.vari+(1-b2)*g[i]*g[i]
			e.d = e.mean/(1-math.Pow(b1, float64(t)))/(math.Sqrt(e.vari/(1-math.Pow(b2, float64(t))))+float64(c.Epsilon)) + e.decay*e.w
			d += e.d * e.d
		}
		if adapted {
			ratio = math.Sqrt(w) / math.Sqrt(d)
		}
		for i := range x {
			x[i].w -= lr * ratio * x[i].d
		}
	default:
		for i := range x {
			x[i].step(t, g[i], lr)
		}
	}
}

func (x *twin) step(t int, g, lr float64) {
	if x.c.Name == "adamw" {
		x.w -= lr * x.decay * x.w
	} else {
		g += x.decay * x.w
	}
	switch x.c.Name {
	case "sgd":
		x.w -= lr * g
	case "momentum", "nesterov":
		mu := float64(x.c.Momentum)
		if t == 1 {
			x.m = g
		} else {
			x.m = mu*x.m + (1-float64(x.c.Dampening))*g
		}
		if x.c.Name == "nesterov" {
			x.w -= lr * (g + mu*x.m)
		} else {
			x.w -= lr * x.m
		}
	case "adam", "adamw":
		b1, b2 := float64(x.c.Beta1), float64(x.c.Beta2)
		x.mean = b1*x.mean + (1-b1)*g
		x.vari = b2*x.vari + (1-b2)*g*g
		mean := x.mean / (1 - math.Pow(b1, float64(t)))
		vari := x.vari / (1 - math.Pow(b2, float64(t)))
		x.w -= lr * mean / (math.Sqrt(vari) + float64(x.c.Epsilon))
	case "rmsprop":
		alpha := float64(x.c.Alpha)
		x.vari = alpha*x.vari + (1-alpha)*g*g
		x.m = float64(x.c.Momentum)*x.m + g/(math.Sqrt(x.vari)+float64(x.c.Epsilon))
		x.w -= lr * x.m
	case "adagrad":
		x.vari += g * g
		if x.vari > 0 {
			x.w -= lr * g / (math.Sqrt(x.vari) + float64(x.c.Epsilon))
		}
	}
}

func twinTrajectory(c Config) [][]float64 {
	elements := make([]twin, decayed+other)
	for i := range elements {
		elements[i] = twin{c: c, w: float64(startAt(i-decayed, 4))}
		if i < decayed {
			elements[i] = twin{c: c, w: float64(startAt(i, 1)), decay: float64(c.WeightDecay)}
		}
	}
	var out [][]float64
	for step := 1; step <= steps; step++ {
		var values, gradients []float64
		for i := range elements {
			g := gradientAt(step, i-decayed, 2)
			if i < decayed {
				g = gradientAt(step, i, 0)
			}
			gradients = append(gradients, float64(g))
		}
		groupStep(elements[:decayed], true, step, gradients[:decayed], 0.1/float64(step))
		groupStep(elements[decayed:], false, step, gradients[decayed:], 0.1/float64(step))
		for i := range elements {
			values = append(values, elements[i].w)
		}
		out = append(out, values)
	}
	return out
}
