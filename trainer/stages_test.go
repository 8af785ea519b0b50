package trainer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/parallel"
)

func TestAnnouncements(t *testing.T) {
	tensor, n, err := parseAnnouncement("0 3x4 layer 1.weight")
	require.NoError(t, err)
	require.Equal(t, 12, n)
	require.Equal(t, "layer 1.weight", tensor.Name)
	require.Equal(t, []int{3, 4}, tensor.Shape)
	require.Equal(t, device.F32, tensor.Buf.Type)
	_, n, err = parseAnnouncement("3  scalar")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	for line, want := range map[string]string{
		"":                      "type, shape and name are missing",
		"0 3":                   "type, shape and name are missing",
		"8 3 x":                 `"8" is no type`,
		"f32 3 x":               `"f32" is no type`,
		"0 3x-1 x":              `"3x-1" is no shape`,
		"0 1048576x1048577x1 x": `"1048576x1048577x1" is no shape`,
	} {
		_, _, err := parseAnnouncement(line)
		require.EqualError(t, err, want, line)
	}
}

// Each stage of a rank counts with what it keeps itself, and no pass is to expect more.
func TestActivationsOfSeveralStages(t *testing.T) {
	s := &session{micro: 2}
	s.pipeline = &parallel.Pipeline{
		Costs: []parallel.BlockCost{{Activations: 1000}, {Activations: 70}, {Activations: 70}, {Activations: 20}},
		Cuts:  []int{1, 2, 3},
		Loads: []parallel.StageLoad{{Held: 2}, {Rank: 1, Held: 2}, {Rank: 1, Held: 1}, {Held: 3}},
	}
	s.stages = []parallel.Stage{{Index: 0}, {Index: 3}}
	least, held := s.stageActivations()
	require.Equal(t, 10.0, least)
	require.Equal(t, 2*500.0+3*10, held)
}

func FuzzAnnouncement(f *testing.F) {
	f.Add("0 3x4 layer 1.weight")
	f.Add("3  scalar")
	f.Add("0 0x99999999999 none")
	f.Fuzz(func(t *testing.T, line string) {
		tensor, n, err := parseAnnouncement(line)
		if err != nil {
			return
		}
		require.True(t, n >= 0 && n <= mostElements, "%d", n)
		require.Positive(t, tensor.Buf.Type.Size())
	})
}
