package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// contains looks for words in a text that was wrapped.
func contains(text []byte, want string) bool {
	return strings.Contains(strings.Join(strings.Fields(string(text)), " "), want)
}

// TestAscendNotBuilt: the program without the binding says how to get it.
func TestAscendNotBuilt(t *testing.T) {
	for _, args := range [][]string{{"-config", "mlp.yaml"}, {"bench"}} {
		for _, key := range []string{"collective.backend", "compute.kernels"} {
			out, err := start(t, nil, append(args, "-set", key+"=ascend")).CombinedOutput()
			require.Equal(t, exitUsage, code(err), "%s", out)
			require.True(t, contains(out, key+": ascend: this binary was built without Ascend; build it with: go build -tags ascend ./cmd/train"), "%s", out)
		}
	}
}
