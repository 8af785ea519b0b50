package ascend

import (
	"path/filepath"
	"strings"
)

// Config says where the libraries are. The zero value looks in the usual places.
type Config struct {
	// Dir is the directory of the libraries; nothing else is looked at then.
	Dir string
	// Getenv looks up ASCEND_HOME_PATH and ASCEND_TOOLKIT_HOME; nil: none is set.
	Getenv func(string) string
}

// Candidates returns the names under which a library is opened, in their order:
// below the directories that CANN's set_env.sh sets, by the loader's own search
// (LD_LIBRARY_PATH), and in the usual places of an installation.
func (c Config) Candidates(name string) []string {
	if c.Dir != "" {
		return []string{filepath.Join(c.Dir, name)}
	}
	var found []string
	for _, variable := range []string{"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"} {
		if c.Getenv == nil {
			break
		}
		if root := c.Getenv(variable); root != "" {
			found = append(found, filepath.Join(root, "lib64", name))
		}
	}
	found = append(found, name)
	for _, root := range []string{"/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann"} {
		found = append(found, filepath.Join(root, "lib64", name))
	}
	return found
}

// FirstGeneration reports whether a chip, by the name that Chip returns, is a 910 or
// 910A, which lacks what later ones have: bfloat16, products of float32, some
// operations of HCCL.
func FirstGeneration(chip string) bool {
	after, ok := strings.CutPrefix(chip, "Ascend910")
	return ok && !strings.HasPrefix(after, "B") && !strings.HasPrefix(after, "C") && !strings.HasPrefix(after, "_93")
}
