package config

import "reflect"

// unsupported lists the keys that this version accepts but cannot act upon, so
// that any value other than the default is refused. Whoever builds the feature
// deletes its row. Names that are refused are in choices.
func unsupported() []struct{ key, feature string } {
	return []struct{ key, feature string }{
		{"launch.rendezvous", "an address to meet at (set MASTER_ADDR and MASTER_PORT)"},
		{"launch.hosts", "starting processes on other hosts"},
		{"launch.max_restarts", "restarts"},
		{"checkpoint.keep_best", "keeping the best checkpoint"},
		{"checkpoint.fallback", "falling back to an older checkpoint"},
		{"observe.metrics", "the metrics endpoint"},
		{"observe.dashboard", "the dashboard"},
	}
}

// checkSupported finds a setting that this version would have to ignore.
func (c *Config) checkSupported() error {
	usual := Default()
	for _, row := range unsupported() {
		v, d := c.lookup(row.key), usual.lookup(row.key)
		if reflect.DeepEqual(v.Interface(), d.Interface()) {
			continue
		}
		return c.Errorf(row.key, "%s asks for %s, which this version does not have yet; leave it at %s", row.key, row.feature, leafText(d))
	}
	if p := c.Launch.NProc; p.Low != p.High {
		return c.Errorf("launch.nproc", "launch.nproc: %s asks for an elastic job, which this version does not have yet; give one number", p)
	}
	return nil
}
