package config

import "github.com/gradfusion/gradfusion/collective/tcp"

// checkConnections checks the settings of TCP connections that are no plain
// numbers.
func (c *Config) checkConnections() error {
	k := &c.Collective
	if err := tcp.CheckInterface(k.Interface); err != nil && k.Interface != "" {
		return c.Errorf("collective.interface", "collective.interface: %v", err)
	}
	if k.Ports.High > 65535 {
		return c.Errorf("collective.ports", "collective.ports is %s; ports end at 65535", k.Ports)
	}
	if k.Segment > tcp.MaxSegment {
		return c.Errorf("collective.segment", "collective.segment is %s; it has to be at most 64MiB", textOf(k.Segment))
	}
	if k.BufferMB > 1024 {
		return c.Errorf("collective.buffer_mb", "collective.buffer_mb is %s; it has to be at most 1024", textOf(k.BufferMB))
	}
	if k.TLS.Name != "files" && k.TLS != (TLS{Name: k.TLS.Name}) {
		return c.Errorf("collective.tls.cert", "collective.tls: cert, key and ca are of name: files, but the name is %s", k.TLS.Name)
	}
	if k.TLS.Name == "files" && (k.TLS.Cert == "" || k.TLS.Key == "" || k.TLS.CA == "") {
		return c.Errorf("collective.tls.name", "collective.tls: files wants cert, key and ca, such as {name: files, cert: rank.pem, key: rank.key, ca: ca.pem}")
	}
	return nil
}

func textOf(v interface{ MarshalText() ([]byte, error) }) string {
	text, err := v.MarshalText()
	if err != nil {
		return err.Error()
	}
	return string(text)
}
