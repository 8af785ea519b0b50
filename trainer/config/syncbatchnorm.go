package config

import "strings"

// checkSyncBatchNorm refuses statistics over ranks where they cannot be had or
// would change nothing.
func (c *Config) checkSyncBatchNorm() error {
	const key = "parallel.sync_batchnorm"
	switch {
	case !c.Parallel.SyncBatchNorm:
		return nil
	case !strings.HasPrefix(c.Model.Name, "resnet"):
		return c.Errorf(key, "%s is for models with BatchNorm, which the resnets are; with model.name: %s it would be ignored", key, c.Model.Name)
	case c.Parallel.Pipeline > 1:
		return c.Errorf(key, "%s does not go with parallel.pipeline: the columns would have to run their micro-batches in step; turn one of the two off", key)
	}
	return nil
}
