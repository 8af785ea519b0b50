package floors

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/gradfusion/gradfusion/"

// floors lists the folders of each floor, the lowest first. A folder stands for
// what is below it too, unless that is listed itself.
var floors = [][]string{
	{"collective/plan", "parallel/schedule", "data", "observe", "internal/spelling"},
	{"device", "wire"},
	{"nn", "collective"},
	{"optim", "amp", "models"},
	{"parallel", "launch", "checkpoint"},
	{"trainer", "bench", "diag", "tune", "report", "interop/gorgonia", "configs"},
	{"cmd/train"},
}

// floorOf returns the floor and the listed folder of a package of this module.
// internal/ holds tools and tests, which stand above everything.
func floorOf(pkg string) (floor int, folder string, ok bool) {
	for dir := pkg; dir != "."; dir = filepath.Dir(dir) {
		for f, dirs := range floors {
			if slices.Contains(dirs, dir) {
				return f, dir, true
			}
		}
	}
	return len(floors), "internal", strings.HasPrefix(pkg, "internal/")
}

type listed struct {
	ImportPath, Dir, Name string
	Imports, GoFiles      []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Name,Imports,GoFiles", "./...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []listed
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else {
			require.NoError(t, err)
		}
		all = append(all, p)
	}
}

func TestImportsGoDownwards(t *testing.T) {
	for _, p := range packages(t) {
		name, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			continue // the module's root
		}
		floor, folder, ok := floorOf(name)
		require.True(t, ok, "%s has no floor: add it to the list of its floor here and in CONTRIBUTING.md", name)
		for _, i := range p.Imports {
			if target, ours := strings.CutPrefix(i, module); ours {
				below, other, _ := floorOf(target)
				require.True(t, below < floor || other == folder, "%s (floor %d) imports %s (floor %d)", name, floor, target, below)
			}
			standard := !strings.Contains(strings.SplitN(i, "/", 2)[0], ".")
			if folder == "collective/plan" || folder == "parallel/schedule" {
				require.True(t, standard || strings.HasPrefix(i, module+folder), "%s imports %s, but is for the standard library only", name, i)
			}
			if strings.HasPrefix(i, "gorgonia.org/gorgonia") {
				require.Equal(t, "interop/gorgonia", name, "only interop/gorgonia imports gorgonia")
			}
		}
	}
}

func TestPackagesAreNamedAfterWhatTheyHold(t *testing.T) {
	for _, p := range packages(t) {
		for _, vague := range []string{"util", "utils", "common", "core", "pkg", "helpers", "misc"} {
			require.NotEqual(t, vague, p.Name, p.ImportPath)
			require.NotContains(t, strings.Split(p.ImportPath, "/"), vague)
		}
	}
}

func TestFilesStayShort(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			if bytes.HasPrefix(text, []byte("// Code generated ")) {
				continue
			}
			require.Less(t, bytes.Count(text, []byte("\n")), 300, "%s: cut it by what is in it", path)
			require.NotContains(t, string(text), "\nfunc init()", "%s: what init does belongs to a caller", path)
		}
	}
}
