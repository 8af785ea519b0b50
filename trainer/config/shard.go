package config

// Shards is parallel.shard_optimizer. Where all ranks share memory each writes its part
// of the parameters to the others for less than it would cost to update all of them;
// auto shards there, unless something that was chosen needs the whole optimizer.
func (c *Config) Shards(sharesMemory bool) bool {
	switch c.Parallel.ShardOptimizer {
	case On:
		return true
	case Off:
		return false
	}
	return sharesMemory && c.Train.LocalSGD == 0 && c.Fusion.OverlapForward != On
}
