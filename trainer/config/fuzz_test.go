package config

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// FuzzLoad: whatever the text, an *Error or a Config that survives YAML.
func FuzzLoad(f *testing.F) {
	f.Add([]byte("optim: {lr: 0.1, schedule: cosine}\n"), "optim.lr=0.1")
	f.Add(Default().YAML(), "model.stem=small")
	f.Add([]byte("a: &x [1, 2]\nb: *x\n<<: *x\n"), "=")
	f.Add([]byte("include: f.yaml\n"), "fusion.wire={name: f32}")
	f.Add([]byte("? a\n: |\n  b\n--- !!str\n"), "train.seed='1'")
	f.Add([]byte("data: {path: \"\\u2028\\\"\"}\n"), "data.path=\u2029")
	f.Fuzz(func(t *testing.T, text []byte, set string) {
		c, err := Load("f.yaml", Sources{Embedded: fstest.MapFS{"f.yaml": {Data: text}}, Set: []string{set}})
		if err != nil {
			require.True(t, errors.As(err, new(*Error)))
			require.NotEmpty(t, err.Error())
			return
		}
		again, err := Read("again", c.YAML())
		require.NoError(t, err, "%s", c.YAML())
		require.Equal(t, c.YAML(), again.YAML())
	})
}
