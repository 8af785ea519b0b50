package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var kills = flag.Int("kills", 10, "how many workers TestKilledWorkers ends")

// TestKilledWorkers: kill -9 and SIGSTOP of any rank at any step. Every run ends
// with code 3, names the rank, and leaves no process, segment, file or socket.
func TestKilledWorkers(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	before := leftovers(t)
	t.Run("all", func(t *testing.T) { killAll(t, seed, rng) })
	require.Equal(t, before, leftovers(t), "seed %d", seed)
}

func killAll(t *testing.T, seed uint64, rng *rand.Rand) {
	for i := range *kills {
		k := kill{
			world: 2 + rng.IntN(3), signal: []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP}[i%2],
			transport: []string{"auto", "tcp"}[rng.IntN(2)], lines: 1 + rng.IntN(20),
		}
		k.rank = rng.IntN(k.world)
		t.Run(fmt.Sprintf("%d: %v of rank %d of %d over %s", i, k.signal, k.rank, k.world, k.transport), func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", seed)
			k.run(t)
		})
	}
}

type kill struct {
	world, rank int
	signal      syscall.Signal
	transport   string
	lines       int // of steps that pass first
}

func (k kill) run(t *testing.T) {
	cmd := start(t, []string{"TMPDIR=" + t.TempDir()}, strings.Fields(fmt.Sprintf("-config mlp.yaml -nproc %d -set observe.run_dir=run -set data.name=digits -set train.epochs=100000 -set observe.log_every=1"+
		" -set collective.transport=%s -set collective.timeout=%s -set collective.heartbeat=200ms", k.world, k.transport, map[bool]string{true: "5s", false: "60s"}[k.signal == syscall.SIGSTOP])))
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	cmd.Stderr = write
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	lines := bufio.NewScanner(read)
	for left := k.lines; left > 0 && lines.Scan(); {
		if strings.Contains(lines.Text(), "INFO step") {
			left--
		}
	}
	workers := childrenOf(t, cmd.Process.Pid)
	require.Len(t, workers, k.world)
	pid, err := strconv.Atoi(workers[k.rank])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, k.signal))
	text := remains(lines)
	require.Equal(t, exitNetwork, code(cmd.Wait()), text)
	at := strings.Index(text, "train: rank")
	if last := strings.LastIndex(text, "\ntrain: "); last > 0 {
		at = last + 1
	}
	require.GreaterOrEqual(t, at, 0, text)
	words := strings.Join(strings.Fields(text[at:]), " ")
	if k.signal == syscall.SIGKILL {
		require.Contains(t, words, fmt.Sprintf("rank %d of %d was killed by a signal (killed)", k.rank, k.world))
		require.Contains(t, words, fmt.Sprintf("peer %d: ", k.rank))
	} else {
		require.Contains(t, words, fmt.Sprintf("peer %d: ", k.rank))
		require.Contains(t, words, "it is stopped by a signal or a debugger; waited 5s for it")
	}
	require.Contains(t, words, "group world, call ")
	for _, worker := range workers {
		require.NoFileExists(t, filepath.Join("/proc", worker, "stat"), "a worker is left")
	}
	temporary, err := os.ReadDir(lookup(cmd.Env)("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, temporary)
}

// leftovers lists what outlives processes, as far as it could be ours.
func leftovers(t *testing.T) []string {
	found, err := filepath.Glob("/dev/shm/*gradfusion*")
	require.NoError(t, err)
	sockets, err := os.ReadFile("/proc/net/unix")
	require.NoError(t, err)
	for line := range bytes.Lines(sockets) {
		if bytes.Contains(line, []byte("gradfusion")) {
			found = append(found, string(line))
		}
	}
	return found
}

// TestFrozenTransport: a rank that neither sends nor receives is reported on all
// ranks.
func TestFrozenTransport(t *testing.T) {
	cmd := start(t, nil, strings.Fields("-config mlp.yaml -nproc 3 -set observe.run_dir=run -set data.name=digits -set train.epochs=1000"+
		" -set collective.timeout=4s -set collective.heartbeat=50ms -set collective.stall=300ms"))
	cmd.Args = append(cmd.Args, "-set", "collective.faults=[rank=1 kind=freeze after=40]")
	out, err := cmd.CombinedOutput()
	require.Equal(t, exitNetwork, code(err), "%s", out)
	require.Regexp(t, `WARN call \d+ of group world \(.* of bucket .*\) has not ended after`, string(out))
	require.Contains(t, string(out), "in it\n")
	for r := range 3 {
		log, err := os.ReadFile(filepath.Join(cmd.Dir, "run", fmt.Sprintf("rank-%d.log", r)))
		require.NoError(t, err)
		require.Contains(t, string(log), "has not ended after", "rank %d", r)
	}
}

// TestInjectedDeath: collective.faults can kill a rank.
func TestInjectedDeath(t *testing.T) {
	for _, transport := range []string{"auto", "inproc"} {
		var cmd *exec.Cmd = start(t, nil, strings.Fields("-config mlp.yaml -nproc 3 -set observe.run_dir=run -set data.name=digits -set train.epochs=1000 -set collective.transport="+transport))
		cmd.Args = append(cmd.Args, "-set", "collective.faults=[rank=2 kind=kill after=30]")
		out, err := cmd.CombinedOutput()
		require.Equal(t, exitNetwork, code(err), "%s", out)
		require.Regexp(t, `peer 2:|killed by an injected fault|rank 2 of 3 was killed by a signal`, strings.Join(strings.Fields(string(out)), " "))
	}
}
