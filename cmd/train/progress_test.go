package main

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/trainer"
)

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59499 * time.Millisecond: "59s", 59500 * time.Millisecond: "1m", 89 * time.Second: "1m",
		59*time.Minute + 29*time.Second: "59m", 59*time.Minute + 30*time.Second: "1h00m", 79 * time.Minute: "1h19m",
	} {
		require.Equal(t, want, brief(d), d)
	}
}

// The texts beside the bar keep their widths and leave it room on 80 columns.
func TestTextsBesideTheBar(t *testing.T) {
	for _, e := range []trainer.Event{
		{Kind: trainer.Stepped, Epoch: 1, Epochs: 5, Step: 1, Total: 940, Loss: 2.58391, Accuracy: 0.1406, SamplesPerSec: 13, Remaining: 79 * time.Minute},
		{Kind: trainer.Stepped, Epoch: 5, Epochs: 5, Step: 940, Total: 940, Loss: 0.1, Accuracy: 1, SamplesPerSec: 1234},
	} {
		require.Len(t, barHead(e)+barTail(e), 71)
	}
}

// Figures are numbers for whoever reads the log with a program.
func TestLogLine(t *testing.T) {
	var lines bytes.Buffer
	d := newDisplay(displayConfig{every: 1, lines: []io.Writer{&lines}})
	d.on(trainer.Event{Kind: trainer.Evaluated, Step: 188, Accuracy: 0.41954, Loss: 2.60249})
	d.close()
	require.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3} INFO evaluated \{"step": 188, "accuracy": 0.4195, "loss": 2.602\}\n$`, lines.String())
}
