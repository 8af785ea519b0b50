package config

// checkAscend finds settings that do not go with computing on Ascend devices, and
// those of the CPU backend that the Ascend backend would have to ignore.
func (c *Config) checkAscend() error {
	if c.Compute.Kernels == "ascend" && c.Train.Deterministic == "world" {
		return c.Errorf("compute.kernels", "compute.kernels: ascend is refused under train.deterministic: world, because nothing says in which order the device adds; "+
			"turn one of the two off")
	}
	switch halves := c.Collective.DeviceHalves; {
	case halves && c.Collective.Backend != "ascend":
		return c.Errorf("collective.device_halves", "collective.device_halves is for collective.backend: ascend; the CPU adds 16-bit floats in float32")
	case halves && c.Train.Deterministic == "world":
		return c.Errorf("collective.device_halves", "collective.device_halves is refused under train.deterministic: world, because nothing says in which order the devices add and round; turn one of the two off")
	case halves && c.Fusion.WireScope == "across-hosts":
		return c.Errorf("collective.device_halves", "collective.device_halves does not go with fusion.wire_scope: across-hosts, whose sums between hosts are made on the host; turn one of the two off")
	case c.Collective.Backend != "ascend":
		return nil
	}
	usual := Default().Collective
	switch {
	case c.Collective.Algorithm != usual.Algorithm:
		return c.Errorf("collective.algorithm", "collective.algorithm: %s is for collective.backend: cpu; with ascend, HCCL chooses, or the variable HCCL_ALGO; leave it at auto", c.Collective.Algorithm)
	case c.Collective.Pack == On:
		return c.Errorf("collective.pack", "collective.pack: true is for collective.backend: cpu; with ascend, HCCL sends between hosts too; leave it at auto")
	case len(c.Collective.Faults) != len(usual.Faults):
		return c.Errorf("collective.faults", "collective.faults are for collective.backend: cpu; leave them away with ascend")
	}
	return nil
}
