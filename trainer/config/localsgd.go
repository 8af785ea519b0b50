package config

// checkLocalSGD refuses what cannot be had when ranks train apart.
func (c *Config) checkLocalSGD() error {
	k := c.Train.LocalSGD
	if k == 0 {
		return nil
	}
	for _, row := range []struct {
		with   bool
		key    string
		reason string
	}{
		{c.Train.Deterministic == "world", "train.deterministic", "what ranks that train apart compute depends on how many they are"},
		{c.Parallel.ShardOptimizer == On, "parallel.shard_optimizer", "ranks that train apart need all of the optimizer's state"},
		{c.Parallel.SyncBatchNorm, "parallel.sync_batchnorm", "it sends something in every step"},
		{c.Parallel.Pipeline > 1, "parallel.pipeline", "a model that is cut over ranks sends something in every step"},
		{c.Parallel.Tensor > 1, "parallel.tensor", "a model that is cut over ranks sends something in every step"},
		{c.Fusion.Wire.Name != "f32", "fusion.wire", "gradients are not sent"},
		{c.AMP.Level != "O0", "amp.level", "ranks agree on overflows in every step"},
		{c.Fusion.CheckEvery%k != 0, "fusion.check_every", "the ranks are equal after every multiple of train.local_sgd only"},
	} {
		if row.with {
			return c.Errorf("train.local_sgd", "train.local_sgd: %d does not go with %s: %s; turn one of the two off", k, row.key, row.reason)
		}
	}
	return nil
}
