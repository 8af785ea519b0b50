package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden texts")

// cases returns the blocks of testdata/errors.txt: a title line "== name", the
// YAML, lines "set: key=value" or "env: NAME=value", a line of dashes, and the
// recorded error text.
func cases(t *testing.T, file string) (titles, inputs, wants []string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for block := range strings.SplitSeq("\n"+string(text), "\n== ") {
		if block == "" {
			continue
		}
		title, rest, _ := strings.Cut(block, "\n")
		input, want, _ := strings.Cut(rest+"\n", "\n----\n")
		input += "\n"
		titles, inputs, wants = append(titles, title), append(inputs, input), append(wants, strings.TrimRight(want, "\n"))
	}
	return titles, inputs, wants
}

func load(t *testing.T, input string) (*Config, error) {
	var yaml strings.Builder
	var from Sources
	files := fstest.MapFS{"half.yaml": {Data: []byte("optim:\n  momentum: 0.5\n  lr: 0.3\n")}, "bad.yaml": {Data: []byte("optim:\n  lr: 0.3\n  moment: 0.5\n")},
		"loop.yaml": {Data: []byte("include: [half.yaml, loop.yaml]\n")}, "mlp.yaml": {Data: []byte("model: {name: mlp}\n")}}
	name := "test.yaml"
	for line := range strings.Lines(input) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		switch key {
		case "set":
			from.Set = append(from.Set, value)
		case "env":
			from.Environ = append(from.Environ, value)
		case "file":
			name = value
		default:
			yaml.WriteString(line)
		}
	}
	files["test.yaml"] = &fstest.MapFile{Data: []byte(yaml.String())}
	from.Embedded = files
	return Load(name, from)
}

func TestErrorTexts(t *testing.T) {
	const file = "testdata/errors.txt"
	titles, inputs, wants := cases(t, file)
	require.Greater(t, len(titles), 40)
	var out strings.Builder
	for i, title := range titles {
		_, err := load(t, inputs[i])
		require.Error(t, err, title)
		require.True(t, errors.As(err, new(*Error)), title)
		if !*update {
			require.Equal(t, wants[i], err.Error(), title)
		}
		fmt.Fprintf(&out, "== %s\n%s----\n%s\n\n", title, inputs[i], err)
	}
	if *update {
		require.NoError(t, os.WriteFile(filepath.FromSlash(file), []byte(strings.TrimRight(out.String(), "\n")+"\n"), 0o644))
	}
}
