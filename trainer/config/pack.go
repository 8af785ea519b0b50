package config

// checkPack refuses packing where nothing is sent that could be packed.
func (c *Config) checkPack() error {
	if t := c.Collective.Transport; c.Collective.Pack == On && (t == "shm" || t == "inproc") {
		return c.Errorf("collective.pack", "collective.pack: true packs what goes over tcp, which collective.transport: %s does not use; leave it at auto", t)
	}
	return nil
}
