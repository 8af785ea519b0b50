package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// badBenches are command lines that must end with exit code 2 and a sentence.
func badBenches() []string {
	return []string{
		"-op allreduc", "-op allreduce,sum", "-dtype f8", "-sizes 1KiBs", "-sizes 1001", "-sizes 1KiB,12 -dtype f64",
		"-sizes 8..4", "-nproc 0", "-nproc two", "-iters -1", "-warmup x", "-transport mpi", "-algorithm rong",
		"-op sendrecv -algorithm ring", "-wire int5", "-wire int8 -dtype f64", "-plot a.png", "-plot nowhere/a.svg", "-runs 2",
		"-size 1KiB", "-op", "allreduce", "-set collective.timeout=never",
		"-scaling 1,2", "-scaling 1,two -config mlp.yaml", "-scaling 1,1 -config mlp.yaml", "-scaling 0 -config mlp.yaml",
		"-scaling 1,2 -config mlp.yaml -op allreduce", "-scaling 1,2 -config mlp.yaml -runs many",
		"-scaling 1,2 -config mlp.yaml -transport inproc", "-scaling 1 -config mlp.yaml -set launch.nproc=3",
	}
}

func TestBadBench(t *testing.T) {
	var all strings.Builder
	for _, args := range badBenches() {
		cmd := start(t, nil, strings.Fields("bench "+args))
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.Equal(t, exitUsage, code(cmd.Run()), "%s: %s%s", args, &stdout, &stderr)
		require.Empty(t, stdout.String(), args)
		fmt.Fprintf(&all, "$ train bench %s\n%s\n", args, stderr.String())
	}
	const file = "testdata/bad_bench.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), all.String())
}

// benchOutput runs a benchmark and returns stdout.
func benchOutput(t *testing.T, environ []string, args string) (output, folder string) {
	cmd := start(t, environ, strings.Fields("bench "+args))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s: %s", args, &stderr)
	return stdout.String(), cmd.Dir
}

// benchLine is a line of the contract; unknown keys are errors.
type benchLine struct {
	Op         *string  `json:"op"`
	DType      *string  `json:"dtype"`
	Bytes      *int     `json:"bytes"`
	Ranks      *int     `json:"ranks"`
	Transport  *string  `json:"transport"`
	Algorithm  *string  `json:"algorithm"`
	Registered *bool    `json:"registered"`
	Iters      *int     `json:"iters"`
	P50        *float64 `json:"lat_us_p50"`
	Best       *float64 `json:"lat_us_best"`
	AlgBW      *float64 `json:"algbw_gbps"`
	BusBW      *float64 `json:"busbw_gbps"`
	Correct    *bool    `json:"correct"`
}

// readBench reads lines, every one with all keys of the contract and no other,
// and all of them correct.
func readBench(t *testing.T, output string) (all []benchLine) {
	for line := range strings.Lines(output) {
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		var l benchLine
		require.NoError(t, decoder.Decode(&l), line)
		require.NotContains(t, fmt.Sprintf("%+v", l), "nil", line)
		require.True(t, *l.Correct, line)
		all = append(all, l)
	}
	return all
}

// TestBenchOfProcesses runs every operation over what trainings use.
func TestBenchOfProcesses(t *testing.T) {
	output, _ := benchOutput(t, nil, "-op all -sizes 1KiB,200KiB -iters 3 -json")
	all := readBench(t, output)
	require.Len(t, all, 19)
	for _, l := range all {
		require.Equal(t, 2, *l.Ranks)
		require.Equal(t, 3, *l.Iters)
		require.Contains(t, []string{"tcp", "shm"}, *l.Transport)
		require.Contains(t, []int{0, 1024, 200 << 10}, *l.Bytes)
	}
	require.Equal(t, "allreduce", *all[0].Op)
	require.Equal(t, "sendrecv", *all[18].Op)
	require.InEpsilon(t, *all[0].AlgBW, *all[0].BusBW, 1e-4) // 2(n-1)/n is 1; printed with 6 digits
}

func TestBenchOfGoroutines(t *testing.T) {
	output, folder := benchOutput(t, nil, "-transport inproc -nproc 3 -sizes 1KiB..16KiB -algorithm ring,naive -private -iters 3 -plot a.svg -dtype bf16,i8")
	require.Contains(t, output, "all-reduce of bf16, 3 ranks over inproc, ordinary memory\n")
	require.Contains(t, output, "all-reduce of i8, ")
	require.Equal(t, 20, strings.Count(output, "  yes\n"))
	require.FileExists(t, filepath.Join(folder, "a.svg"))
	output, _ = benchOutput(t, nil, "-transport inproc -nproc 1 -sizes 4KiB -iters 2 -plot - -set collective.timeout=5s")
	require.Contains(t, output, "4 KiB")
	require.Contains(t, output, "bandwidth (size / time)")
	output, _ = benchOutput(t, nil, "-transport inproc -sizes 4KiB -iters 2 -json -limit")
	require.Contains(t, output, `"limit_us":`)
}

// TestScaling measures a small training with one and with two processes.
func TestScaling(t *testing.T) {
	output, folder := benchOutput(t, nil, "-scaling 1,2 -config mlp.yaml -set data.name=digits -set model.hidden=[16] -iters 3 -runs 2 -json")
	lines := strings.Split(strings.TrimSpace(output), "\n")
	require.Len(t, lines, 2)
	var second struct {
		Ranks, Batch, Steps, Runs int
		Speedup                   float64
		Ideal                     float64 `json:"ideal_speedup"`
		Efficiency                float64 `json:"scaling_efficiency"`
		SamplesPerSec             float64 `json:"samples_per_sec"`
	}
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &second))
	require.Equal(t, []int{2, 128, 3, 2}, []int{second.Ranks, second.Batch, second.Steps, second.Runs})
	require.Equal(t, 2.0, second.Ideal)
	require.Positive(t, second.SamplesPerSec)
	require.InEpsilon(t, second.Speedup/2, second.Efficiency, 1e-4) // printed with 6 digits
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left, "runs of a benchmark leave nothing")
}

// TestScalingTellsWhatFails: the training's own paragraph.
func TestScalingTellsWhatFails(t *testing.T) {
	cmd := start(t, nil, strings.Fields("bench -scaling 1,2 -config mlp.yaml -set data.path=nowhere"))
	out, err := cmd.CombinedOutput()
	require.Equal(t, exitUsage, code(err), "%s", out)
	require.Contains(t, string(out), "data.path")
}

// TestBenchInterrupted: a signal ends all ranks at once.
func TestBenchInterrupted(t *testing.T) {
	for _, args := range []string{"-transport inproc", "-nproc 2"} {
		cmd := start(t, nil, strings.Fields("bench -json -sizes 8,16MiB -iters 3000 "+args))
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		require.NoError(t, cmd.Start())
		_, err = bufio.NewReader(stdout).ReadString('\n') // they measure
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.Equal(t, exitInterrupted, code(cmd.Wait()), &stderr)
		require.Equal(t, "train: interrupted\n", stderr.String())
	}
}
