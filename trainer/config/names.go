package config

import (
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/internal/spelling"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/optim"
)

// choice is a key whose value is one of a list of names.
type choice struct {
	key  string
	have []string // names this version has
	all  []string // names of the contract; those beyond have are refused as not there yet
}

func choices() []choice {
	words := strings.Fields
	var sets []string
	for _, set := range data.Names() {
		sets = append(sets, set.Name)
	}
	algorithms := []string{"auto"}
	for _, a := range plan.Algorithms() {
		algorithms = append(algorithms, a.Name)
	}
	wires := words("f32 f16 bf16 int8 int4 topk powersgd")
	return []choice{
		{"model.name", models.Names(), models.Names()},
		{"model.stem", []string{"", "imagenet", "small"}, []string{"", "imagenet", "small"}},
		{"model.shortcut", []string{"", "A", "B"}, []string{"", "A", "B"}},
		{"model.recompute", words("none blocks"), words("none blocks")},
		{"data.name", sets, sets},
		{"data.tokens", words("bytes characters"), words("bytes characters")},
		{"optim.name", optim.Names(), words("sgd momentum nesterov adam adamw rmsprop adagrad lars lamb")},
		{"optim.schedule.name", optim.ScheduleNames(), words("constant step multistep linear cosine polynomial onecycle")},
		{"train.deterministic", words("off world"), words("off world")},
		{"parallel.activation_wire", words("f32 f16 bf16"), words("f32 f16 bf16")},
		{"fusion.wire.name", wires, wires},
		{"fusion.wire_scope", words("all across-hosts"), words("all across-hosts")},
		{"amp.level", words("O0 O1 O2 O3"), words("O0 O1 O2 O3")},
		{"amp.type", words("f16 bf16"), words("f16 bf16")},
		{"collective.backend", words("cpu ascend"), words("cpu ascend")},
		{"collective.transport", words("auto shm tcp inproc"), words("auto shm tcp inproc")},
		{"collective.algorithm", algorithms, algorithms},
		{"launch.placement", words("auto data-inside pipeline-inside rank-order"), words("auto data-inside pipeline-inside rank-order")},
		{"collective.tls.name", words("off auto files"), words("off auto files")},
		{"compute.kernels", words("auto naive portable avx2 avx512 amx neon openblas onednn ascend"), words("auto naive portable avx2 avx512 amx neon openblas onednn ascend")},
		{"compute.conv", words("auto direct winograd2 winograd4"), words("auto direct winograd2 winograd4")},
	}
}

// checkNames finds a name that is not known, or not yet.
func (c *Config) checkNames() error {
	for _, choice := range choices() {
		name := c.lookup(choice.key).String()
		switch {
		case choice.key == "collective.algorithm" && strings.ContainsAny(name, ":,;=/"):
			if _, err := plan.ParseSelection(name); err != nil {
				return c.Errorf(choice.key, "%s: %v", choice.key, err)
			}
		case slices.Contains(choice.have, name):
		case slices.Contains(choice.all, name):
			return c.Errorf(choice.key, "%s: %s is not in this version yet; it has %s", choice.key, name, strings.Join(choice.have, ", "))
		default:
			return c.unknownName(choice.key, name, choice.all)
		}
	}
	return nil
}

func (c *Config) unknownName(key, name string, known []string) error {
	known = slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k == "" })
	if near := spelling.Nearest(name, known); near != "" {
		return c.Errorf(key, "%s: %s is not known; did you mean %s?", key, quote(name), near)
	}
	return c.Errorf(key, "%s: %s is not known; known: %s", key, quote(name), strings.Join(known, ", "))
}
