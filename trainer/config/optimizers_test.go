package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefaultsOfOptimizers(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want func(*Optim)
	}{
		{[]string{"optim.name=rmsprop"}, func(o *Optim) { o.Name, o.Momentum = "rmsprop", 0 }},
		{[]string{"optim.name=rmsprop", "optim.momentum=0.9"}, func(o *Optim) { o.Name = "rmsprop" }},
		{[]string{"optim.name=adagrad"}, func(o *Optim) { o.Name, o.Epsilon = "adagrad", 1e-10 }},
		{[]string{"optim.name=adagrad", "optim.epsilon=1e-8"}, func(o *Optim) { o.Name = "adagrad" }},
		{[]string{"optim.name=lamb"}, func(o *Optim) { o.Name, o.Epsilon = "lamb", 1e-6 }},
		{[]string{"optim.name=lars", "optim.trust=0.01"}, func(o *Optim) { o.Name, o.Trust = "lars", 0.01 }},
		{[]string{"optim.schedule=onecycle"}, func(o *Optim) { o.Schedule.Name, o.Schedule.Warmup = "onecycle", 0.3 }},
		{[]string{"optim.schedule=onecycle", "optim.schedule.warmup=0.05"}, func(o *Optim) { o.Schedule.Name = "onecycle" }},
	} {
		want := Default().Optim
		c.want(&want)
		got, err := Load("", Sources{Set: c.set})
		require.NoError(t, err, c.set)
		require.Equal(t, want, got.Optim, c.set)
	}
	_, err := Load("", Sources{Set: []string{"optim.name=lars", "optim.momentum=0"}})
	require.ErrorContains(t, err, "optim.momentum is 0; lars wants it above 0")
	_, err = Load("", Sources{Set: []string{"optim.name=adam", "optim.trust=0.5"}})
	require.ErrorContains(t, err, "optim.trust is a setting of optim.name: lars; with optim.name: adam it would be ignored")
}

func TestLocalSGDGoesWith(t *testing.T) {
	_, err := Load("", Sources{Set: []string{"train.local_sgd=4", "fusion.check_every=8", "optim.name=adamw"}})
	require.NoError(t, err)
	for set, key := range map[string]string{
		"train.deterministic=world":     "train.deterministic: what ranks",
		"parallel.shard_optimizer=true": "parallel.shard_optimizer: ranks",
		"fusion.check_every=6":          "fusion.check_every: the ranks are equal",
		"parallel.pipeline=2":           "parallel.pipeline: a model",
		"parallel.sync_batchnorm=true":  "parallel.sync_batchnorm: it sends",
		"fusion.wire=f16":               "fusion.wire: gradients are not sent",
	} {
		_, err := Load("", Sources{Set: []string{"train.local_sgd=4", set}})
		require.ErrorContains(t, err, "train.local_sgd: 4 does not go with "+key, set)
	}
}
