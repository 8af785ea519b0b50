package readme

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// document is README.md, taken apart.
type document struct {
	prose  string              // without the code blocks
	blocks map[string][]string // the code blocks by language, "" where none is given
}

func load(t *testing.T) document {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	d := document{blocks: map[string][]string{}}
	for i, part := range strings.Split("\n"+string(text), "\n```") {
		if i%2 == 0 {
			d.prose += part
			continue
		}
		language, code, found := strings.Cut(part, "\n")
		require.True(t, found, "an empty code block: %q", part)
		d.blocks[language] = append(d.blocks[language], code+"\n")
	}
	return d
}

// commands returns the lines of the shell blocks, in order.
func (d document) commands() (all []command) {
	for _, block := range d.blocks["sh"] {
		for line := range strings.Lines(block) {
			text, comment, _ := strings.Cut(line, "#")
			if text = strings.TrimSpace(text); text != "" {
				all = append(all, command{text, strings.TrimSpace(comment)})
			}
		}
	}
	return all
}

// quoted returns what the prose has in backticks.
func (d document) quoted() (all []string) {
	for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(d.prose, -1) {
		all = append(all, found[1])
	}
	return all
}

// squeeze drops indentation and empty lines.
func squeeze(code string) string {
	var out strings.Builder
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

func TestCodeIsThatOfTheExample(t *testing.T) {
	blocks := load(t).blocks["go"]
	require.NotEmpty(t, blocks)
	example, err := os.ReadFile(filepath.Join(root, "parallel", "example_test.go"))
	require.NoError(t, err)
	for _, block := range blocks {
		var shown string
		for line := range strings.Lines(squeeze(block)) {
			shown += line
			require.True(t, strings.Contains(squeeze(string(example)), shown),
				"README.md shows code that parallel/example_test.go does not have, from this line on: %s", line)
		}
	}
}

func TestPathsExist(t *testing.T) {
	path := regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$`) // `runs/`, made by a run, is none
	checked := 0
	for _, word := range load(t).quoted() {
		if path.MatchString(word) {
			require.FileExists(t, orFolder(filepath.Join(root, word)), "README.md names %s", word)
			checked++
		}
	}
	require.Greater(t, checked, 5, "README.md's paths are not found")
}

// orFolder returns path, or a file that exists where path is a folder.
func orFolder(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(root, "README.md")
	}
	return path
}

// The recipes are listed in one sentence, as folders.
func TestRecipesExist(t *testing.T) {
	_, list, found := strings.Cut(load(t).prose, "the README files of ")
	require.True(t, found)
	list, _, _ = strings.Cut(list, ".")
	folders := document{prose: list}.quoted()
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		assert.FileExists(t, filepath.Join(root, folder, "README.md"), "README.md promises a recipe")
	}
}

// The floors are the block without a language: a number, folders, and remarks
// in parentheses.
func TestFoldersOfTheFloorsExist(t *testing.T) {
	blocks := load(t).blocks[""]
	require.Len(t, blocks, 1)
	for line := range strings.Lines(regexp.MustCompile(`(?s)\(.*?\)`).ReplaceAllString(blocks[0], "")) {
		words := strings.Fields(line)
		require.NotEmpty(t, words)
		for _, folder := range words[1:] {
			require.DirExists(t, filepath.Join(root, folder), "README.md shows a floor with it")
		}
	}
}
