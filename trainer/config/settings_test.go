package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository.
const root = "../.."

// TestSettingsDocument: docs/settings.md has every key with its default and
// meaning, and no other.
func TestSettingsDocument(t *testing.T) {
	var text strings.Builder
	text.WriteString("# Settings\n\nEvery key of a configuration with its default and meaning, as `train help config` prints them too.\n" +
		"`-set model.name=mlp` overrides a file's key; in a file it is `model: {name: mlp}`, or\n`model:` with `name: mlp` below. `go test ./trainer/config -update` writes this file.\n")
	section := ""
	for _, s := range Describe() {
		if name, _, _ := strings.Cut(s.Key, "."); name != section {
			section = name
			fmt.Fprintf(&text, "\n## %s\n\n| key | default | meaning |\n|---|---|---|\n", name)
		}
		fmt.Fprintf(&text, "| `%s` | `%s` | %s |\n", s.Key, s.Default, strings.ReplaceAll(s.Meaning, "|", `\|`))
	}
	file := filepath.Join(root, "docs", "settings.md")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String())
}

// TestDocumentsNameKeys: what README, docs and changelog call a key is one, or a
// group of them.
func TestDocumentsNameKeys(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	files = append(files, filepath.Join(root, "README.md"), filepath.Join(root, "CHANGELOG.md"))
	var sections []string
	for _, key := range Keys() {
		section, _, _ := strings.Cut(key, ".")
		sections = append(sections, section)
	}
	slices.Sort(sections)
	key := regexp.MustCompile(`\b(` + strings.Join(slices.Compact(sections), "|") + `)(\.[a-z_0-9]+)+`)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range key.FindAllString(string(text), -1) {
			if slices.Contains([]string{".go", ".py", ".md", ".yaml"}, filepath.Ext(name)) {
				continue
			}
			found++
			known := slices.ContainsFunc(Keys(), func(k string) bool { return k == name || strings.HasPrefix(k, name+".") })
			require.True(t, known, "%s names %s, which is no key", file, name)
		}
	}
	require.Greater(t, found, len(Keys()))
}
