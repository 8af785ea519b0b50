package config

// checkSparse refuses sparse gradients where they cannot be had, and lazy updates
// where nothing is sparse.
func (c *Config) checkSparse() error {
	const key = "model.sparse_embedding"
	switch wire := c.Fusion.Wire; {
	case c.Optim.Lazy && !c.Model.SparseEmbedding:
		return c.Errorf("optim.lazy", "optim.lazy is about sparse gradients, which only %s gives; without it it would be ignored", key)
	case !c.Model.SparseEmbedding:
		return nil
	case c.Optim.Lazy && (c.Optim.Name == "lars" || c.Optim.Name == "lamb"):
		return c.Errorf("optim.lazy", "optim.lazy does not go with optim.name: %s, which scales a parameter by norms of all its rows; turn one of the two off", c.Optim.Name)
	case c.Parallel.Tensor > 1:
		return c.Errorf(key, "%s does not go with parallel.tensor: %d, which cuts the embedding over ranks; turn one of the two off", key, c.Parallel.Tensor)
	case wire.Keeps():
		return c.Errorf(key, "%s does not go with fusion.wire: %s: rows travel as f32, f16 or bf16", key, wire.Name)
	}
	return nil
}
