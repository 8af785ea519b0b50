package readme

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	root    = "../.."
	program = "go run ./cmd/train"
)

// command is a line of a shell block.
type command struct{ text, comment string }

// built is the program that README.md runs from source.
var built string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "readme-")
	if err == nil {
		defer os.RemoveAll(folder)
		built = filepath.Join(folder, "train")
		err = build()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build() error {
	// The test reads the program's sources through another process. A look at
	// each tells go test to run this again when one has changed.
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "runs"}, entry.Name()):
			return filepath.SkipDir
		case slices.Contains([]string{".go", ".s", ".yaml", ".mod"}, filepath.Ext(path)):
			_, _ = os.Stat(path) // what has just gone is no concern
		}
		return nil
	})
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", built, "./cmd/train")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// train runs the program in folder and requires exit code 0. Nothing of the
// environment reaches it that could make it join a job or set a key.
func train(t *testing.T, folder string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute) // on a busy machine
	defer cancel()
	cmd := exec.CommandContext(ctx, built, args...)
	cmd.Dir = folder
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.Getenv("TMPDIR")}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its workers
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "train %s\n%s", strings.Join(args, " "), out)
	require.NotEmpty(t, out)
	return string(out)
}

// quick shortens a training unless it is short already.
func quick(args []string) []string {
	if !strings.Contains(strings.Join(args, " "), "train.steps=") {
		args = append(slices.Clone(args), "-set", "train.steps=2", "-set", "train.eval_every=never")
	}
	return args
}

// worldSize requires the run's files in folder and returns its ranks.
func worldSize(t *testing.T, folder string) int {
	t.Helper()
	runs, err := filepath.Glob(filepath.Join(folder, "runs", "*"))
	require.NoError(t, err)
	require.Len(t, runs, 1)
	for _, name := range []string{"config.yaml", "metrics.jsonl", "rank-0.log", "summary.json"} {
		require.FileExists(t, filepath.Join(runs[0], name))
	}
	text, err := os.ReadFile(filepath.Join(runs[0], "summary.json"))
	require.NoError(t, err)
	var summary struct {
		WorldSize int `json:"world_size"`
	}
	require.NoError(t, json.Unmarshal(text, &summary))
	return summary.WorldSize
}

func TestFirstCommands(t *testing.T) {
	all := load(t).commands()
	require.GreaterOrEqual(t, len(all), 2)
	require.Equal(t, program+" -config resnet.yaml", all[0].text)
	require.Equal(t, "go test ./...", all[1].text)
}

func TestCommandsRun(t *testing.T) {
	for _, c := range load(t).commands() {
		if c.text == "go test ./..." {
			continue
		}
		t.Run(strings.TrimPrefix(c.text, program+" "), func(t *testing.T) {
			require.True(t, strings.HasPrefix(c.text, program+" "), "a command that is not tested: %s", c.text)
			folder, args := t.TempDir(), strings.Fields(c.text)[3:]
			if !strings.HasPrefix(args[0], "-") {
				train(t, folder, args...)
				return
			}
			train(t, folder, quick(args)...)
			ranks := worldSize(t, folder)
			for i, words := range []string{"one process", "two processes", "three processes", "four processes"} {
				if strings.Contains(c.comment, words) {
					require.Equal(t, i+1, ranks, c.comment)
				}
			}
			if i := slices.Index(args, "-summary"); i >= 0 {
				require.FileExists(t, filepath.Join(folder, args[i+1]))
			}
		})
	}
}

// What the prose and its table quote: arguments to add to a training, and
// commands.
func TestQuotedArgumentsWork(t *testing.T) {
	checked := 0
	for _, words := range load(t).quoted() {
		arguments := strings.HasPrefix(words, "-set ")
		if !arguments && !strings.HasPrefix(words, program+" ") {
			continue
		}
		checked++
		t.Run(words, func(t *testing.T) {
			folder := t.TempDir()
			if !arguments {
				train(t, folder, strings.Fields(words)[3:]...)
				return
			}
			args := append([]string{"-config", "mlp.yaml"}, strings.Fields(words)...)
			train(t, folder, quick(args)...)
			worldSize(t, folder)
			switch {
			case strings.Contains(words, "checkpoint.dir=DIR"):
				require.DirExists(t, filepath.Join(folder, "DIR"))
				require.NotContains(t, train(t, folder, append(quick(args), "-resume", "-set", "train.steps=4")...), "afresh")
			case strings.Contains(words, "observe.trace=true"):
				traces, err := filepath.Glob(filepath.Join(folder, "runs", "*", "trace.json"))
				require.NoError(t, err)
				require.Len(t, traces, 1)
			}
		})
	}
	require.Greater(t, checked, 3, "README.md's table is not found")
}
