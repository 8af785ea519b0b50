package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stage that dies in the middle ends the job: every rank says where it was in
// the schedule, and the launcher shows what rank 0 saw.
func TestAStageDies(t *testing.T) {
	args := short + " -nproc 3 -set model.hidden=[16,16] -set parallel.pipeline=3 -set train.micro_batch=16 -set train.steps=1000 -set train.eval_every=never -set observe.run_dir=run -set collective.timeout=60s"
	cmd := start(t, nil, append(strings.Fields(args), "-set", `collective.faults=["rank=2 kind=kill after=300 count=1"]`))
	exit, out, words := run(t, cmd)
	require.Equal(t, exitNetwork, exit, words)
	require.Empty(t, out)
	require.Contains(t, words, "rank 2 of 3 was killed by a signal (killed)")
	for _, rank := range []string{"rank-0.log", "rank-1.log"} {
		text := contentOf(t, filepath.Join(cmd.Dir, "run", rank))
		require.Regexp(t, `(?s)train: step \d+, (Wait|stage \d,.*of\s+micro-batch \d)`, text, rank)
		require.Regexp(t, `(?m)^rank \d of the pipeline was at$`, text, rank)
		require.Regexp(t, `(?m)^rank 1   .*1[FB]\d`, text, rank)
		require.Regexp(t, `(?m)^ +\^$`, text, rank)
	}
	require.Contains(t, words, "rank 0 of the pipeline was at")
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}
