package ascendsim

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed c
var sources embed.FS

// Layout is how the symbols are spread over libraries.
type Layout string

// The layouts.
const (
	CANN8 Layout = "8"   // up to 8.x: libascendcl and libhccl
	CANN9 Layout = "9"   // libhccl for operations, libhcomm for communicators
	Old   Layout = "old" // as CANN8, without the symbols that came later
)

// Build compiles the libraries into the directory dir/LAYOUT and returns it. It
// needs a C compiler, which compiler names; empty is gcc.
func Build(dir string, layout Layout, compiler string) (string, error) {
	from, err := Sources(filepath.Join(dir, "sources"))
	if err != nil {
		return "", err
	}
	if compiler == "" {
		compiler = "gcc"
	}
	out := filepath.Join(dir, string(layout))
	text, err := exec.Command("sh", filepath.Join(from, "build.sh"), out, string(layout), compiler).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the simulated Ascend libraries: %w\n%s", err, strings.TrimSpace(string(text)))
	}
	return out, nil
}

// Sources writes the C files into a directory and returns it.
func Sources(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	files, err := sources.ReadDir("c")
	if err != nil {
		return "", err
	}
	for _, f := range files {
		text, err := sources.ReadFile("c/" + f.Name())
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name()), text, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}
