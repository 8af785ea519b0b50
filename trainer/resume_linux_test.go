package trainer_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/trainer"
)

// A checkpoint that was continued from is not kept open, which would keep it on the
// disk when it is removed.
func TestCheckpointIsClosedAfterTheFirstStep(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, steps := range []string{"2", "4"} {
		stepped := 0
		_, err := trainer.Run(t.Context(), trainer.Job{Config: small(t, "checkpoint.dir="+dir, "train.steps="+steps), Resume: steps == "4", On: func(e trainer.Event) {
			if e.Kind == trainer.Stepped {
				stepped++
				require.Empty(t, openIn(t, dir))
			}
		}})
		require.NoError(t, err)
		require.Equal(t, 2, stepped)
	}
}

// openIn lists the files of dir that this process has open.
func openIn(t *testing.T, dir string) (open []string) {
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, link := range links {
		if file, err := os.Readlink(link); err == nil && filepath.Dir(file) == dir {
			open = append(open, file)
		}
	}
	return open
}
