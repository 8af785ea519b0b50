package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/trainer/config"
)

// TestCertificatesWhereNoneAreUsed: files that are not there are missed only by ranks
// that would show them to each other.
func TestCertificatesWhereNoneAreUsed(t *testing.T) {
	for _, c := range []struct {
		transport string
		world     int
		dryRun    bool
		used      bool
	}{
		{"auto", 2, false, true},
		{"tcp", 2, false, true},
		{"auto", 2, true, false},
		{"tcp", 1, false, false},
		{"inproc", 2, false, false},
		{"shm", 2, false, false},
	} {
		settings := config.Default()
		settings.Collective.Transport, settings.Parallel.DryRun = c.transport, c.dryRun
		settings.Collective.TLS = config.TLS{Name: "files", Cert: "nowhere.pem", Key: "nowhere.key", CA: "nowhere.pem"}
		err := checkCertificates(settings, c.world)
		if c.used {
			require.ErrorContains(t, err, "collective.tls.cert: the file cannot be read", c)
		} else {
			require.NoError(t, err, c)
		}
	}
}

// TestBenchMissesCertificates before it starts anything.
func TestBenchMissesCertificates(t *testing.T) {
	cmd := start(t, nil, strings.Fields("bench -nproc 2 -set collective.tls.name=files -set collective.tls.cert=x.pem -set collective.tls.key=x.pem -set collective.tls.ca=x.pem"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.Equal(t, exitUsage, code(cmd.Run()))
	require.Contains(t, strings.Join(strings.Fields(stderr.String()), " "), "collective.tls.cert: the file cannot be read")
}
