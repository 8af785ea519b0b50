package parallel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

func TestSpecsTravel(t *testing.T) {
	s := &spec{
		shapes: []nn.Shape{nn.Plain(3, 4), nn.Image(2, 17, 5, 5), nn.Plain()},
		types:  []device.Type{device.F32, device.BF16, device.I32},
		needs:  []bool{true, true, false},
		known:  true,
	}
	b, err := s.encode()
	require.NoError(t, err)
	got, err := decodeSpec(b)
	require.NoError(t, err)
	require.Equal(t, s, got)
	for at, v := range map[int]int32{0: maxTensors + 1, 1: 8, 2: 2, 3: 5, 5: -1, 6: 1 << 30} {
		wrong := device.FromI32(append([]int32(nil), b.I32()...))
		wrong.I32()[at] = v
		_, err := decodeSpec(wrong)
		require.Error(t, err, "number %d is %d", at, v)
	}
}

func FuzzDecodeSpec(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 4})
	f.Fuzz(func(t *testing.T, text []byte) {
		b := device.FromI32(make([]int32, specLen))
		copy(b.Bytes(), text)
		s, err := decodeSpec(b)
		if err != nil {
			return
		}
		for i, shape := range s.shapes {
			require.GreaterOrEqual(t, shape.Len(), 0)
			require.Positive(t, s.types[i].Size())
		}
	})
}
