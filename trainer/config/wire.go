package config

import (
	"slices"

	"github.com/gradfusion/gradfusion/parallel"
)

// Keeps reports whether each rank keeps what the format has not sent, for the
// next step: all do but plain floats.
func (w Wire) Keeps() bool { return !slices.Contains([]string{"", "f32", "f16", "bf16"}, w.Name) }

// yieldWire takes back a 16-bit wire, which a configuration carries as advice,
// where a later source chooses something that it does not go with; likewise the
// scope of a wire for which a later source chooses one that has none.
func (c *Config) yieldWire() error {
	w := &c.Fusion.Wire
	if later := c.Position("fusion.wire.name").source > c.Position("fusion.wire_scope").source; later && (w.Name == "f32" || w.Name == parallel.PowerSGD) {
		c.Fusion.WireScope = "all"
	}
	if w.Name != "f16" && w.Name != "bf16" {
		return nil
	}
	for key, chosen := range map[string]bool{
		"train.deterministic":  c.Train.Deterministic == "world",
		"train.local_sgd":      c.Train.LocalSGD > 0,
		"collective.algorithm": c.Collective.Algorithm != "auto",
	} {
		if chosen && c.Position(key).source > c.Position("fusion.wire.name").source {
			w.Name, c.Fusion.WireScope = "f32", "all"
		}
	}
	return nil
}

// checkWire finds settings that do not go with a format of gradients on the wire.
func (c *Config) checkWire() error {
	w, scope := &c.Fusion.Wire, c.Fusion.WireScope
	if w.Name == "f32" {
		if scope != "all" {
			return c.Errorf("fusion.wire_scope", "fusion.wire_scope: %s is a setting of fusion.wire: f16, bf16, int8, int4, topk; with fusion.wire: f32 it would be ignored", scope)
		}
		return nil
	}
	switch {
	case c.Train.Deterministic == "world":
		return c.Errorf("fusion.wire.name", "fusion.wire: %s is refused under train.deterministic: world, because what it rounds depends on the number of ranks; "+
			"it gives the same bits for one number of ranks without that, so turn one of the two off", w.Name)
	case w.Name == parallel.PowerSGD && scope == "across-hosts":
		return c.Errorf("fusion.wire_scope", "fusion.wire_scope: across-hosts does not go with fusion.wire: powersgd, whose factors are sums over all ranks; leave it at all")
	case w.Name == "topk" && c.Optim.Dampening != 0:
		return c.Errorf("optim.dampening", "optim.dampening does not go with fusion.wire: topk, which corrects momentum without it; leave it at 0")
	case w.Keeps() && (c.Parallel.Pipeline > 1 || c.Parallel.Tensor > 1) && c.Checkpoint.Dir != "":
		return c.Errorf("fusion.wire.name", "fusion.wire: %s keeps what it has not sent, which this version cannot save of a model that is cut; "+
			"use f16 or bf16, or no checkpoint.dir", w.Name)
	}
	return nil
}
