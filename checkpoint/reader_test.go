package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/gradfusion/gradfusion/device"
	"github.com/stretchr/testify/require"
)

// foreign is a second reader of the format, which shares nothing with the
// first: what a stranger would write from the format's description.
func foreign(t *testing.T, path string) (metadata map[string]string, floats map[string][]float32) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	n := binary.LittleEndian.Uint64(b)
	require.Equal(t, byte('{'), b[8], "the format wants the header to start at once")
	require.Zero(t, n%8)
	var header map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(b[8:8+n], &header))
	require.NoError(t, json.Unmarshal(header["__metadata__"], &metadata))
	delete(header, "__metadata__")
	body, covered := b[8+n:], 0
	floats = map[string][]float32{}
	for name, raw := range header {
		var info struct {
			Dtype       string
			Shape       []int
			DataOffsets [2]int `json:"data_offsets"`
		}
		require.NoError(t, json.Unmarshal(raw, &info))
		piece := body[info.DataOffsets[0]:info.DataOffsets[1]]
		covered += len(piece)
		if info.Dtype != "F32" {
			continue
		}
		count := 1
		for _, d := range info.Shape {
			count *= d
		}
		require.Len(t, piece, 4*count)
		for i := range count {
			floats[name] = append(floats[name], math.Float32frombits(binary.LittleEndian.Uint32(piece[4*i:])))
		}
	}
	require.Len(t, body, covered)
	return metadata, floats
}

func TestForeignReaderReadsOurFiles(t *testing.T) {
	state := sample()
	path, err := Write(t.TempDir(), 7, state)
	require.NoError(t, err)
	metadata, floats := foreign(t, path)
	require.Len(t, metadata["gradfusion_sha256"], 64)
	delete(metadata, "gradfusion_sha256")
	require.Equal(t, state.Metadata, metadata)
	require.Equal(t, []float32{1.5, -2, 0, 1e-30, 3, 4}, floats["conv1.weight"])
	require.Equal(t, []float32{42}, floats["scale"])
	require.Nil(t, floats["empty"])
}

func TestReadsForeignFiles(t *testing.T) {
	// As other writers make them: compact, unsorted, no metadata; the float
	// stands at an odd byte.
	text := `{"x":{"data_offsets":[1,5],"shape":[1],"dtype":"F32"},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`
	s, err := decode(assemble(text, []byte{9, 0, 0, 0x80, 0x3f}))
	require.NoError(t, err)
	require.Equal(t, []float32{1}, device.FromBytes(device.F32, s.Find("x").Data).F32())
	require.Equal(t, []byte{9}, s.Find("b").Data)
	require.Nil(t, s.Find("y"))
	s, err = decode(assemble("{}", nil))
	require.NoError(t, err)
	require.Empty(t, s.Tensors)
}
