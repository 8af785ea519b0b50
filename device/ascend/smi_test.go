package ascend

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestParseSMI(t *testing.T) {
	for _, name := range []string{"smi-910b", "smi-910c"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		require.NoError(t, err)
		all, err := ParseSMI(string(text))
		require.NoError(t, err)
		var b strings.Builder
		for _, r := range all {
			fmt.Fprintln(&b, r)
		}
		golden := "testdata/" + name + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), b.String())
	}
	require.True(t, Reading{Health: "Alarm"}.Fails())
	require.False(t, Reading{Health: "Warning"}.Fails())
}

func TestParseSMIRefuses(t *testing.T) {
	const head = "| NPU Name | Health | Power |\n"
	for text, want := range map[string]string{
		"":                          "no table of devices",
		"dcmi module not found":     "no table of devices",
		head + "| x 910 | OK | 1 |": `npu-smi info, line 2: "x" is no number`,
		head + "| 0 | OK | 1 |":     `line 2: "0" is no device's number and name`,
		head + "| 0 910 | OK | 1 |\n|  | 0 | 1 |":                                                   "line 3: a device without the number of its chip",
		head + "| NPU Chip | Process id | Process name | Process memory(MB) |\n| 1 0 | 2 | p | x |": `line 3: "x" is no number`,
	} {
		_, err := ParseSMI(text)
		require.ErrorContains(t, err, want)
	}
}

// FuzzParseSMI: whatever a program of that name prints, the answer is readings or
// an error.
func FuzzParseSMI(f *testing.F) {
	for _, name := range []string{"testdata/smi-910b.txt", "testdata/smi-910c.txt"} {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseSMI(text)
		require.NotEqual(t, err == nil, len(all) == 0)
		for _, r := range all {
			require.GreaterOrEqual(t, min(r.NPU, r.Chip), 0)
			require.NotEmpty(t, r.Name)
		}
	})
}
