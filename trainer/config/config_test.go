package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefaultSurvivesYAML(t *testing.T) {
	text := Default().YAML()
	got, err := Read("default", text)
	require.NoError(t, err, "%s", text)
	want := Default()
	want.file, want.positions = got.file, got.positions
	require.Equal(t, want, got)
}
