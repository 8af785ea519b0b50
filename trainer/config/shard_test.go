package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/trainer/config"
)

// TestShards: auto shards where it pays and nothing speaks against it.
func TestShards(t *testing.T) {
	for _, c := range []struct {
		set          string
		sharesMemory bool
		parameters   int
		want         bool
	}{
		{"parallel.shard_optimizer=auto", true, config.WorthSharding, true},
		{"parallel.shard_optimizer=auto", true, config.WorthSharding - 1, false},
		{"parallel.shard_optimizer=auto", false, config.WorthSharding, false},
		{"train.local_sgd=2", true, config.WorthSharding, false},
		{"fusion.overlap_forward=true", true, config.WorthSharding, false},
		{"parallel.shard_optimizer=true", false, 1, true},
		{"parallel.shard_optimizer=false", true, config.WorthSharding, false},
	} {
		cfg, err := config.Load("", config.Sources{Set: []string{c.set}})
		require.NoError(t, err)
		require.Equal(t, c.want, cfg.Shards(c.sharesMemory, c.parameters), "%+v", c)
	}
}
