package trainer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimitFiles(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"0::/user.slice/job 7.scope\n", []string{"/c/user.slice/job 7.scope/memory.max", "/c/user.slice/memory.max", "/c/memory.max"}},
		{"5:devices:/a\n4:cpu,memory:/slurm/job_1\n0::/\n", []string{
			"/c/memory/slurm/job_1/memory.limit_in_bytes", "/c/memory/slurm/memory.limit_in_bytes", "/c/memory/memory.limit_in_bytes", "/c/memory.max"}},
		{"0::/../..\n", []string{"/c/memory.max"}},
		{"", nil},
		{"nonsense\n0:\n", nil},
	} {
		require.Equal(t, c.want, limitFiles("/c", c.text), "%q", c.text)
	}
}
