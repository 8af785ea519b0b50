package config

// WorthSharding is how many parameters a model has from which auto shards its
// optimizer: below, the ranks' waiting for each other takes longer than the update.
const WorthSharding = 1 << 20

// Shards is parallel.shard_optimizer for a model of that many parameters. Where all
// ranks share memory each reads the others' parts of the parameters for less than it
// costs to update all of them; auto shards there, unless something that was chosen
// needs the whole optimizer.
func (c *Config) Shards(sharesMemory bool, parameters int) bool {
	switch c.Parallel.ShardOptimizer {
	case On:
		return true
	case Off:
		return false
	}
	return sharesMemory && parameters >= WorthSharding && c.Train.LocalSGD == 0 && c.Fusion.OverlapForward != On
}
