package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCommittedAssemblyIsCurrent generates every family again and compares.
func TestCommittedAssemblyIsCurrent(t *testing.T) {
	for family := range families() {
		assembly, stubs := filepath.Join(t.TempDir(), "a.s"), filepath.Join(t.TempDir(), "stubs.go")
		folder, pkg := "..", "cpu"
		switch family {
		case "wire2":
			folder, pkg = "../../../wire", "wire"
		case "floats512", "floats2":
			folder, pkg = "../../../wire/pack", "pack"
		}
		if out, err := exec.Command("go", "run", ".", "-family", family, "-out", assembly, "-stubs", stubs, "-pkg", pkg).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for generated, committed := range map[string]string{assembly: folder + "/" + family + "_amd64.s", stubs: folder + "/stubs_" + family + "_amd64.go"} {
			got, want := body(t, generated), body(t, committed)
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what the generator writes", committed)
			}
		}
	}
}

// body returns a file without its first line, which holds the command.
func body(t *testing.T, name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(b, []byte("\n"))
	return rest
}
