package schedule

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func TestGridsAreGolden(t *testing.T) {
	for _, g := range generators() {
		var text strings.Builder
		for _, size := range [][2]int{{4, 6}, {2, 5}, {4, 2}, {3, 1}, {1, 3}, {2, 0}} {
			s := g.make(size[0], g.stages(2), size[1])
			timing, err := s.Simulate(Costs{})
			require.NoError(t, err)
			fmt.Fprintf(&text, "%d ranks, %d micro-batches: span %g, idle %.1f %%\n%s\n%s\n", size[0], size[1],
				timing.Span, 100*timing.IdleShare(), s.Grid(), s.Timeline(timing, 1))
		}
		golden(t, g.name+".txt", text.String())
	}
}

func TestErrorsShowThePicture(t *testing.T) {
	var text strings.Builder
	for _, c := range []struct {
		stages, micros int
		text           string
	}{
		{2, 1, "0F0 0B0\n1F0 1B0 1B0"},
		{2, 1, "0F0 0B0\n1F0"},
		{2, 2, "0F0 0B0\n1F0 1B0"},
		{1, 1, "0B0 0F0"},
		{1, 1, "0F0 0W0 0I0"},
		{1, 1, "0F0 0I0"},
		{1, 1, "0F0 0I0 0W0 0B0"},
		{1, 1, "0F0 0B0 1F0"},
		{1, 1, "0F0 0B0 0F1"},
		{2, 1, "0F0 1B0\n1F0 0B0"},
		{2, 2, "0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0"},
		{1, 1, "0F0 SendF"},
		{1, 1, "0F0 0SendF0 0B0"},
		{1, 1, "0F0 0Arm 0B0"},
		{1, 1, "0F0 0B0 Wait"},
		{1, 1, "0F0 0B0 0Arm Wait"},
		{1, 2, "0F0 0Arm 0B0 0F1 0B1 Wait"},
		{1, 1, "0Arm 0F0 0Arm 0B0 Wait"},
		{1, 1, "0F0 0Arm Wait 0B0"},
		{2, 1, "0F0 0Arm 0B0 Wait\n1F0 1B0 Wait"},
		{2, 2, "0F0 1F0 0Arm 1Arm 1B0 0B0 Wait\n0F1 1F1 1Arm 1B1 0Arm 0B1 Wait"},
		{2, 0, "0Arm Wait"},
	} {
		fmt.Fprintf(&text, "%d stages, %d micro-batches: %q\n", c.stages, c.micros, c.text)
		s, err := Parse(c.text)
		if err == nil {
			err = s.Check(c.stages, c.micros)
		}
		require.Error(t, err, c.text)
		fmt.Fprintf(&text, "%s\n\n", strings.TrimRight(err.Error(), "\n"))
	}
	golden(t, "errors.txt", text.String())
}

func TestErrorOfALargeScheduleIsAWindow(t *testing.T) {
	s := OneForwardOneBackward(64, 256)
	s[32][100], s[32][101] = s[32][101], s[32][100]
	s[32][100].Micro = 7
	err := s.Check(64, 256)
	require.ErrorContains(t, err, "rank 32, action 100")
	require.Less(t, len(err.Error()), 5000)
}
