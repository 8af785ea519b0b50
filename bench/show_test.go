package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scripted are results as a machine might give them.
func scripted() []Result {
	var all []Result
	for bytes := 1 << 10; bytes <= 64<<20; bytes *= 4 {
		ring := result("ring", bytes, 20+float64(bytes)/12e3)
		direct := result("direct", bytes, 8+float64(bytes)/5e3)
		ring.Limit, direct.Limit = float64(bytes)/14e3, float64(bytes)/14e3
		all = append(all, ring, direct)
	}
	return all
}

func TestTable(t *testing.T) {
	var b strings.Builder
	table := NewTable(&b, true)
	for _, r := range scripted() {
		require.NoError(t, table.Add(r))
	}
	wrong := Result{Op: "barrier", DType: "f32", Ranks: 1, Transport: "inproc", Algorithm: "naive", Iterations: 5000, P50: 0.25, Best: 0.125}
	require.NoError(t, table.Add(wrong))
	require.NoError(t, table.Close())
	golden(t, "table.txt", b.String())
	for line := range strings.Lines(b.String()) {
		require.LessOrEqual(t, len(line), 121, line)
	}
}

func TestTerminal(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteTerminal(&b, scripted()))
	golden(t, "terminal.txt", b.String())
	b.Reset()
	require.NoError(t, WriteTerminal(&b, []Result{{Op: "barrier", P50: 1}}))
	require.Empty(t, b.String())
}

func TestSVG(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, WriteSVG(&b, scripted()))
	golden(t, "plot.svg", b.String())
	for decoder := xml.NewDecoder(&b); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}
	require.Error(t, WriteSVG(io.Discard, []Result{{Op: "barrier", P50: 1}}))
}

// TestChartsOfLittle: one point, equal values, and several operations.
func TestChartsOfLittle(t *testing.T) {
	other := result("a<b", 4096, 8)
	other.Op, other.DType = "broadcast", "u8"
	for _, all := range [][]Result{{result("ring", 1024, 8)}, {result("ring", 1024, 8), result("ring", 4096, 8)}, {result("ring", 1024, 8), other}} {
		var b strings.Builder
		require.NoError(t, WriteSVG(&b, all))
		require.NotContains(t, b.String(), "NaN")
		require.NotContains(t, b.String(), "Inf")
		require.NotContains(t, b.String(), "a<b")
		require.NoError(t, WriteTerminal(&b, all))
	}
}
