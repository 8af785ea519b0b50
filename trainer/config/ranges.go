package config

import (
	"math"
	"reflect"
	"strconv"
)

// checkRanges finds a number out of its range.
func (c *Config) checkRanges() error {
	const most = math.MaxInt32
	for _, row := range []struct {
		key      string
		low      float64
		high     float64
		excluded bool // the ends are
	}{
		{"model.base_channels", 0, 1 << 20, false},
		{"model.dropout", -1e-300, 1, true},
		{"data.batch", 1, most, false},
		{"data.workers", 1, 256, false},
		{"optim.lr", 0, 1e6, true},
		{"optim.momentum", -1e-300, 1, true},
		{"optim.dampening", 0, 1, false},
		{"optim.beta1", 0, 1, true},
		{"optim.beta2", 0, 1, true},
		{"optim.epsilon", 0, 1, true},
		{"optim.weight_decay", 0, 1e6, false},
		{"optim.clip_norm", 0, 1e30, false},
		{"optim.schedule.warmup", 0, most, false},
		{"optim.schedule.gamma", 0, 1.0000001, true},
		{"optim.schedule.step_size", 0, most, true},
		{"optim.schedule.power", 0, 1000, true},
		{"optim.schedule.final", 0, 1, false},
		{"train.epochs", 0, most, false},
		{"train.steps", 0, most, false},
		{"train.local_sgd", 0, most, false},
		{"parallel.pipeline", 1, 1 << 16, false},
		{"parallel.tensor", 1, 1 << 16, false},
		{"parallel.virtual_stages", 1, 1 << 16, false},
		{"fusion.threshold_mb", 0, 1 << 20, true},
		{"fusion.first_mb", 0, 1 << 20, true},
		{"fusion.check_every", 0, most, false},
		{"collective.timeout", 1e6, 1e18, false},
		{"collective.retry", 0, 1000, false},
		{"collective.sockets_per_peer", 1, 16, false},
		{"launch.max_restarts", 0, 1e6, false},
		{"checkpoint.keep", 1, 1e6, false},
		{"observe.log_every", 1, most, false},
	} {
		v, text := number(c.lookup(row.key))
		if row.excluded && (v <= row.low || v >= row.high) {
			return c.Errorf(row.key, "%s is %s; it has to be %s", row.key, text, between(row.low, row.high, true))
		}
		if v < row.low || v > row.high {
			return c.Errorf(row.key, "%s is %s; it has to be %s", row.key, text, between(row.low, row.high, false))
		}
	}
	return nil
}

func number(v reflect.Value) (float64, string) {
	text := leafText(v)
	if v.CanInt() {
		return float64(v.Int()), text
	}
	return v.Float(), text
}

// between says a range in words. An upper end that only guards against
// nonsense is left out.
func between(low, high float64, excluded bool) string {
	format := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	switch {
	case low > 1e5 && !excluded:
		return "at least 1ms" // the durations
	case low < 0:
		return "at least 0 and below " + format(high)
	case high >= 1e5 && excluded:
		return "above " + format(low)
	case high >= 1e5:
		return "at least " + format(low)
	case excluded:
		return "above " + format(low) + " and below " + format(high)
	}
	return "between " + format(low) + " and " + format(high)
}
