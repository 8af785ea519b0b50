package config

// checkOverlap refuses sums beside the next forward pass where they cannot be had.
// Left at auto they are simply not had there.
func (c *Config) checkOverlap() error {
	if c.Fusion.OverlapForward != On {
		return nil
	}
	for _, row := range []struct {
		with   bool
		key    string
		reason string
	}{
		{!c.Fusion.Overlap, "fusion.overlap: false", "sums then begin after the backward pass and end before the step does"},
		{c.Parallel.Pipeline > 1, "parallel.pipeline", "the stages wait for each other"},
		{c.Parallel.Tensor > 1, "parallel.tensor", "the partners wait for each other"},
		{c.Parallel.ShardOptimizer == On, "parallel.shard_optimizer", "parameters are what travels beside the forward pass then"},
		{c.Train.LocalSGD > 0, "train.local_sgd", "parameters are what travels beside the forward pass then"},
		{c.Optim.ClipNorm > 0, "optim.clip_norm", "the norm needs all sums before the first update"},
		{c.Optim.Name == "lars" || c.Optim.Name == "lamb", "optim.name: " + c.Optim.Name, "its norms are taken of all layers at a time"},
		{c.Fusion.Wire.Name == "powersgd", "fusion.wire: powersgd", "it has little to send"},
		{c.Model.SparseEmbedding, "model.sparse_embedding", "rows are merged before the update"},
		{c.Collective.Backend != "cpu", "collective.backend: " + c.Collective.Backend, "its calls have one order"},
	} {
		if row.with {
			return c.Errorf("fusion.overlap_forward", "fusion.overlap_forward: true does not go with %s: %s; leave it at auto, or turn the other off", row.key, row.reason)
		}
	}
	return nil
}

// BucketMB is fusion.threshold_mb. auto is 16, and 2 over several hosts, which the
// buckets of a job reach by a link that is slow beside memory: what travels beside
// the backward pass must not wait for the last of many layers. With many ranks,
// which cut a bucket into as many pieces, it stays 16.
func (c *Config) BucketMB(hosts, ranks int) float64 {
	const within, across, most = 16, 2, 8
	switch {
	case c.Fusion.ThresholdMB != 0:
		return float64(c.Fusion.ThresholdMB)
	case hosts == 1 || ranks > most:
		return within
	}
	return across
}
