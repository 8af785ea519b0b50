package main

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/configs"
)

// Whoever reads help has 80 columns.
func TestHelpFitsTheTerminal(t *testing.T) {
	for _, args := range []string{"help", "help bench", "help diag", "help config", "data list"} {
		var stdout, stderr bytes.Buffer
		c := &command{stdout: &stdout, stderr: &stderr}
		require.Equal(t, exitDone, c.run(strings.Fields(args)), "%s", &stderr)
		for line := range strings.Lines(stdout.String()) {
			require.LessOrEqual(t, len(line), width+1, "%s: %s", args, line)
		}
	}
}

// Every configuration in the binary is named there.
func TestHelpNamesTheConfigurations(t *testing.T) {
	names, err := fs.Glob(configs.FS, "*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.Regexp(t, `\b`+name+`\b`, helpText)
	}
}

func TestHelpOnWhatIsNotThere(t *testing.T) {
	var stdout, stderr bytes.Buffer
	c := &command{stdout: &stdout, stderr: &stderr}
	require.Equal(t, exitUsage, c.run([]string{"help", "everything"}))
	require.Empty(t, stdout.String())
	require.Contains(t, stderr.String(), "train help config")
}
