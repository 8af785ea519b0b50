package trainer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/trainer/config"
)

// PowerSGD begins after a twentieth of the run, where nothing else is said.
func TestPowerSGDBegins(t *testing.T) {
	for _, c := range []struct {
		wire         string
		total, begin int
	}{
		{"powersgd", 940, 47},
		{"powersgd", 30, 10},
		{"{name: powersgd, start: 3}", 940, 3},
		{"topk", 940, 0},
	} {
		cfg, err := config.Load("", config.Sources{Set: []string{"fusion.wire=" + c.wire}})
		require.NoError(t, err)
		s := &session{job: Job{Config: cfg}, cfg: cfg, total: c.total}
		require.Equal(t, c.begin, s.compression().Start, c.wire)
	}
}
