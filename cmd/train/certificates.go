package main

import (
	"os"
	"strings"

	"github.com/gradfusion/gradfusion/collective/tcp"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// checkCertificates finds out whether the files of collective.tls can be used here,
// where a job of so many ranks may connect them over tcp.
func checkCertificates(c *config.Config, world int) error {
	t, transport := c.Collective.TLS, c.Collective.Transport
	if t.Name != "files" || world == 1 || c.Parallel.DryRun || transport == "inproc" || transport == "shm" {
		return nil
	}
	for _, f := range []struct{ key, name string }{{"cert", t.Cert}, {"key", t.Key}, {"ca", t.CA}} {
		if _, err := os.ReadFile(f.name); err != nil {
			return c.Errorf("collective.tls."+f.key, "collective.tls.%s: the file cannot be read: %v", f.key, err)
		}
	}
	if err := (&tcp.TLS{Cert: t.Cert, Key: t.Key, CA: t.CA}).Check(); err != nil {
		return c.Errorf("collective.tls.cert", "collective.tls: %s", strings.TrimPrefix(err.Error(), "tcp: tls: "))
	}
	return nil
}
