package collective_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

func TestAlgorithmOf(t *testing.T) {
	transports := inproc.New(2)
	g := collective.NewGroup(transports[0], collective.GroupConfig{Algorithm: "ring"})
	four := device.FromF32(make([]float32, 4))
	for want, c := range map[string]collective.Call{
		"ring":  {Kind: plan.AllReduce, In: four},
		"naive": {Kind: plan.AllReduce, In: four, Algorithm: "naive"},
		"fold":  {Kind: plan.AllReduce, In: device.FromBytes(device.F16, make([]byte, 8))},
		"":      {Kind: plan.AllReduce, In: four, Root: 2},
	} {
		require.Equal(t, want, g.AlgorithmOf(c))
	}
	require.False(t, g.SharesMemory(), "goroutine ranks exchange messages")
	require.NoError(t, g.Close())
	for _, transport := range transports {
		require.NoError(t, transport.Close())
	}
}
