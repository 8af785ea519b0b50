package config

import (
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/data"
)

// belongsTo returns "" when the key means something with what was chosen, or
// else the choices that it is a setting of: "data.name: synthetic".
func (c *Config) belongsTo(key string) string {
	if strings.HasPrefix(key, "amp.") && c.isDefault(key) {
		return "" // files like to say all about amp, and the level then
	}
	for _, row := range []struct{ keys, choice, chosen, names string }{
		{"model.stem", "model.name", c.Model.Name, "resnet18 resnet34 resnet50 resnet101 resnet152"},
		{"model.shortcut model.stages model.base_channels", "model.name", c.Model.Name,
			"resnet20 resnet32 resnet44 resnet56 resnet110 resnet18 resnet34 resnet50 resnet101 resnet152"},
		{"model.hidden", "model.name", c.Model.Name, "mlp cnn"},
		{"model.layers model.heads model.width model.context model.sparse_embedding", "model.name", c.Model.Name, "gpt"},
		{"data.augment", "data.name", c.Data.Name, setNames(false)},
		{"data.tokens data.test_share", "data.name", c.Data.Name, "bible text"},
		{"data.channels data.height data.width data.classes", "data.name", c.Data.Name, "synthetic"},
		{"data.vocabulary", "data.name", c.Data.Name, "synthetic-text"},
		{"data.train_samples data.test_samples", "data.name", c.Data.Name, "synthetic synthetic-text"},
		{"optim.momentum", "optim.name", c.Optim.Name, "momentum nesterov rmsprop lars"},
		{"optim.dampening", "optim.name", c.Optim.Name, "momentum"},
		{"optim.beta1 optim.beta2", "optim.name", c.Optim.Name, "adam adamw lamb"},
		{"optim.alpha", "optim.name", c.Optim.Name, "rmsprop"},
		{"optim.trust", "optim.name", c.Optim.Name, "lars"},
		{"optim.epsilon", "optim.name", c.Optim.Name, "adam adamw rmsprop adagrad lamb"},
		{"optim.schedule.gamma", "optim.schedule.name", c.Optim.Schedule.Name, "step multistep"},
		{"optim.schedule.step_size", "optim.schedule.name", c.Optim.Schedule.Name, "step"},
		{"optim.schedule.milestones", "optim.schedule.name", c.Optim.Schedule.Name, "multistep"},
		{"optim.schedule.power", "optim.schedule.name", c.Optim.Schedule.Name, "polynomial"},
		{"optim.schedule.final", "optim.schedule.name", c.Optim.Schedule.Name, "linear cosine polynomial onecycle"},
		{"optim.schedule.start", "optim.schedule.name", c.Optim.Schedule.Name, "onecycle"},
		{"amp.type amp.loss_scale", "amp.level", c.AMP.Level, "O1 O2 O3"},
		{"amp.keep_batchnorm_fp32", "amp.level", c.AMP.Level, "O2 O3"},
		{"fusion.wire.rank", "fusion.wire.name", c.Fusion.Wire.Name, "powersgd"},
		{"collective.tls.cert collective.tls.key collective.tls.ca", "collective.tls.name", c.Collective.TLS.Name, "files"},
		{"fusion.wire.start", "fusion.wire.name", c.Fusion.Wire.Name, "powersgd topk"},
	} {
		if slices.Contains(strings.Fields(row.keys), key) && !slices.Contains(strings.Fields(row.names), row.chosen) {
			return row.choice + ": " + strings.ReplaceAll(row.names, " ", ", ")
		}
	}
	return ""
}

// isDefault reports whether a key has the value that it has unless given.
func (c *Config) isDefault(key string) bool {
	return leafText(c.lookup(key)) == leafText(Default().lookup(key))
}

// setNames lists the sets that are texts, or those that are images.
func setNames(texts bool) string {
	var names []string
	for _, set := range data.Names() {
		if data.IsText(set.Name) == texts {
			names = append(names, set.Name)
		}
	}
	return strings.Join(names, " ")
}
