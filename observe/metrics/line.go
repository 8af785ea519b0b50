package metrics

import (
	"math"
	"strconv"
)

// Line is one step in metrics.jsonl.
type Line struct {
	Step          int
	Epoch         float64 // with its fraction
	Loss          float64
	LearningRate  float64
	SamplesPerSec float64
	TokensPerSec  float64 // left out when 0: the samples are no texts
	LossScale     float64 // left out when 0: gradients are not scaled
	Times
}

// append writes l as one JSON object and a newline. encoding/json would
// allocate, and refuse a loss that is not finite; here that is null.
func (l *Line) append(b []byte) []byte {
	b = append(b, `{"step":`...)
	b = strconv.AppendInt(b, int64(l.Step), 10)
	for _, field := range [...]struct {
		key   string
		value float64
	}{
		{"epoch", l.Epoch}, {"loss", l.Loss}, {"lr", l.LearningRate}, {"samples_per_sec", l.SamplesPerSec},
		{"step_ms", l.Times.Step}, {"forward_ms", l.Forward}, {"backward_ms", l.Backward},
		{"optimizer_ms", l.Optimizer}, {"comm_ms", l.Comm}, {"comm_exposed_ms", l.Exposed},
		{"bubble_ms", l.Bubble}, {"wait_ms", l.Wait}, {"data_ms", l.Data},
	} {
		b = append(b, `,"`...)
		b = append(b, field.key...)
		b = append(b, `":`...)
		b = appendNumber(b, field.value)
	}
	if l.TokensPerSec != 0 {
		b = append(b, `,"tokens_per_sec":`...)
		b = appendNumber(b, l.TokensPerSec)
	}
	if l.LossScale != 0 {
		b = append(b, `,"loss_scale":`...)
		b = appendNumber(b, l.LossScale)
	}
	return append(b, "}\n"...)
}

func appendNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, v, format, -1, 64)
}
