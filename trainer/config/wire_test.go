package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A 16-bit wire of the file gives way to what a later source chooses; of one
// source both are named.
func TestWireGivesWay(t *testing.T) {
	const advice = "fusion: {wire: f16, wire_scope: across-hosts}\n"
	for _, later := range []string{"train.deterministic=world", "train.local_sgd=4", "collective.algorithm=ring"} {
		c, err := load(t, advice+"set: "+later+"\n")
		require.NoError(t, err, later)
		require.Equal(t, "f32", c.Fusion.Wire.Name, later)
		require.Equal(t, "all", c.Fusion.WireScope, later)
		_, err = load(t, "set: fusion.wire=f16\nset: "+later+"\n")
		require.Error(t, err, later)
		_, err = load(t, "fusion: {wire: int8}\nset: "+later+"\n")
		require.Error(t, err, later)
	}
	for _, name := range []string{"f32", "powersgd"} {
		c, err := load(t, advice+"set: fusion.wire="+name+"\n")
		require.NoError(t, err)
		require.Equal(t, name+" all", c.Fusion.Wire.Name+" "+c.Fusion.WireScope)
	}
	c, err := load(t, advice+"set: train.seed=2\n")
	require.NoError(t, err)
	require.Equal(t, "f16", c.Fusion.Wire.Name)
}
