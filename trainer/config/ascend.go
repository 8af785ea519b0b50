package config

// checkAscend finds settings of the CPU backend that the Ascend backend would have
// to ignore.
func (c *Config) checkAscend() error {
	if c.Collective.Backend != "ascend" {
		return nil
	}
	usual := Default().Collective
	switch {
	case c.Fusion.Wire.Keeps():
		return c.Errorf("fusion.wire.name", "fusion.wire: %s is for collective.backend: cpu; with ascend there are f32, f16 and bf16", c.Fusion.Wire.Name)
	case c.Collective.Algorithm != usual.Algorithm:
		return c.Errorf("collective.algorithm", "collective.algorithm: %s is for collective.backend: cpu; with ascend, HCCL chooses, or the variable HCCL_ALGO; leave it at auto", c.Collective.Algorithm)
	case len(c.Collective.Faults) != len(usual.Faults):
		return c.Errorf("collective.faults", "collective.faults are for collective.backend: cpu; leave them away with ascend")
	}
	return nil
}
