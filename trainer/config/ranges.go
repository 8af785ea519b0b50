package config

import (
	"math"
	"reflect"
	"strconv"
	"time"
)

// limit is the range of a key's value.
type limit struct {
	key       string
	low, high float64
	ends      string // [ and ] belong to the range, ( and ) do not
}

// limits lists the keys whose values are numbers of one range.
func limits() []limit {
	const most = math.MaxInt32
	return []limit{
		{"model.base_channels", 0, 1 << 20, "[]"},
		{"model.layers", 0, 1 << 16, "[]"},
		{"model.heads", 0, 1 << 16, "[]"},
		{"model.width", 0, 1 << 20, "[]"},
		{"model.context", 0, 1 << 20, "[]"},
		{"model.dropout", 0, 1, "[)"},
		{"data.batch", 1, most, "[]"},
		{"data.workers", 1, 256, "[]"},
		{"data.test_share", 0, 1, "()"},
		{"optim.lr", 0, 1e6, "()"},
		{"optim.momentum", 0, 1, "[)"},
		{"optim.dampening", 0, 1, "[]"},
		{"optim.beta1", 0, 1, "()"},
		{"optim.beta2", 0, 1, "()"},
		{"optim.alpha", 0, 1, "()"},
		{"optim.trust", 0, 1e6, "()"},
		{"optim.epsilon", 0, 1, "()"},
		{"optim.weight_decay", 0, 1e6, "[]"},
		{"optim.clip_norm", 0, 1e30, "[]"},
		{"optim.schedule.warmup", 0, most, "[]"},
		{"optim.schedule.gamma", 0, 1, "(]"},
		{"optim.schedule.step_size", 0, most, "()"},
		{"optim.schedule.power", 0, 1000, "()"},
		{"optim.schedule.start", 0, 1, "(]"},
		{"optim.schedule.final", 0, 1, "[]"},
		{"train.epochs", 0, most, "[]"},
		{"train.steps", 0, most, "[]"},
		{"train.local_sgd", 0, most, "[]"},
		{"parallel.pipeline", 1, 1 << 16, "[]"},
		{"parallel.tensor", 1, 1 << 16, "[]"},
		{"parallel.virtual_stages", 1, 1 << 16, "[]"},
		{"fusion.threshold_mb", 0, 1 << 20, "[)"},
		{"fusion.first_mb", 0, 1 << 20, "()"},
		{"fusion.wire.rank", 0, 1024, "[]"},
		{"fusion.wire.start", 0, most, "[]"},
		{"fusion.check_every", 0, most, "[]"},
		{"collective.timeout", 1e6, 1e18, "[]"},
		{"collective.stall", 0, 1e18, "[]"},
		{"collective.heartbeat", 1e7, 1e18, "[]"},
		{"collective.retry", 0, 1000, "[]"},
		{"collective.sockets_per_peer", 1, 16, "[]"},
		{"launch.max_restarts", 0, 1e6, "[]"},
		{"checkpoint.keep", 1, 1e6, "[]"},
		{"observe.log_every", 1, most, "[]"},
	}
}

// checkRanges finds a number out of its range.
func (c *Config) checkRanges() error {
	for _, row := range limits() {
		v, text := number(c.lookup(row.key))
		low := v > row.low || v == row.low && row.ends[0] == '['
		high := v < row.high || v == row.high && row.ends[1] == ']'
		if !low || !high {
			wanted := between(row.low, row.high, row.ends)
			if !high && row.high >= 1e5 { // which between leaves out
				wanted = "at most " + strconv.FormatFloat(row.high, 'f', -1, 64)
				if row.ends[1] == ')' {
					wanted = "below " + strconv.FormatFloat(row.high, 'f', -1, 64)
				}
			}
			return c.Errorf(row.key, "%s is %s; it has to be %s", row.key, text, wanted)
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
func between(low, high float64, ends string) string {
	format := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	if low >= 1e5 {
		return "at least " + time.Duration(low).String()
	}
	out := "at least " + format(low)
	if ends[0] == '(' {
		out = "above " + format(low)
	}
	switch {
	case high >= 1e5:
		return out
	case ends == "[]":
		return "between " + format(low) + " and " + format(high)
	case ends[1] == ')':
		return out + " and below " + format(high)
	}
	return out + " and at most " + format(high)
}
