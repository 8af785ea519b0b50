package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
	"github.com/stretchr/testify/require"
)

func sample() State {
	return State{
		Metadata: map[string]string{"step": "7", "config": "a: \"b\"\n<&>", "": "empty key", "ü": "é"},
		Tensors: []Tensor{
			{Name: "state.count", Type: device.U8, Shape: []int{3}, Data: []byte{1, 2, 3}},
			{Name: "conv1.weight", Type: device.F32, Shape: []int{2, 3}, Data: device.FromF32([]float32{1.5, -2, 0, 1e-30, 3, 4}).Bytes()},
			{Name: "moment", Type: device.F64, Shape: []int{1, 1}, Data: device.FromF64([]float64{-1e300}).Bytes()},
			{Name: "half", Type: device.BF16, Shape: []int{1}, Data: []byte{1, 2}},
			{Name: "scale", Type: device.F32, Shape: []int{}, Data: device.FromF32([]float32{42}).Bytes()},
			{Name: "empty", Type: device.F32, Shape: []int{0, 5}, Data: []byte{}},
			{Name: "odd \"name\"", Type: device.I8, Shape: []int{1}, Data: []byte{0xff}},
		},
	}
}

// assemble puts a file together from its header's text and its body.
func assemble(header string, body []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), body...)
}

func decode(b []byte) (State, error) { return Decode(bytes.NewReader(b), int64(len(b))) }

func TestRoundTrip(t *testing.T) {
	state := sample()
	path, err := Write(t.TempDir(), 120, state)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(path, "step-00000120.safetensors"))
	require.NoError(t, Verify(path))
	got, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, state.Metadata, got.Metadata)
	require.Len(t, got.Tensors, len(state.Tensors))
	var names []string
	for _, x := range got.Tensors {
		require.Equal(t, *state.Find(x.Name), x)
		names = append(names, x.Name)
		if len(x.Data) > 0 {
			require.Zero(t, uintptr(unsafe.Pointer(&x.Data[0]))%uintptr(x.Type.Size()), "%s is not aligned", x.Name)
		}
	}
	require.Equal(t, []string{"moment", "conv1.weight", "empty", "scale", "half", `odd "name"`, "state.count"}, names)

	inspected, err := Inspect(path)
	require.NoError(t, err)
	require.Equal(t, got.Metadata, inspected.Metadata)
	require.Equal(t, []int{2, 3}, inspected.Find("conv1.weight").Shape)
	require.Nil(t, inspected.Find("conv1.weight").Data)
}

func TestSameStateSameBytes(t *testing.T) {
	one, err := Write(t.TempDir(), 1, sample())
	require.NoError(t, err)
	shuffled := sample()
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(shuffled.Tensors), func(i, j int) {
		shuffled.Tensors[i], shuffled.Tensors[j] = shuffled.Tensors[j], shuffled.Tensors[i]
	})
	two, err := Write(t.TempDir(), 1, shuffled)
	require.NoError(t, err)
	a, err := os.ReadFile(one)
	require.NoError(t, err)
	b, err := os.ReadFile(two)
	require.NoError(t, err)
	require.Equal(t, a, b)
}

func TestEmptyState(t *testing.T) {
	path, err := Write(t.TempDir(), 0, State{})
	require.NoError(t, err)
	got, err := Read(path)
	require.NoError(t, err)
	require.Empty(t, got.Tensors)
	require.Empty(t, got.Metadata)
}

func TestRandomStates(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		var state State
		for i := range random.IntN(20) {
			x := Tensor{Name: fmt.Sprint("tensor", i), Type: device.Type(random.IntN(len(dtypes)))}
			n := x.Type.Size()
			x.Shape = make([]int, random.IntN(4))
			for k := range x.Shape {
				x.Shape[k] = random.IntN(5)
				n *= x.Shape[k]
			}
			x.Data = make([]byte, n)
			for k := range x.Data {
				x.Data[k] = byte(random.Uint32())
			}
			state.Tensors = append(state.Tensors, x)
		}
		path, err := Write(t.TempDir(), 3, state)
		require.NoError(t, err, "seed %d", seed)
		got, err := Read(path)
		require.NoError(t, err, "seed %d", seed)
		require.Len(t, got.Tensors, len(state.Tensors))
		for _, x := range state.Tensors {
			require.Equal(t, x, *got.Find(x.Name), "seed %d", seed)
		}
	}
}

// Every bit of the file counts: any flip and any cut is found.
func TestEveryDamageIsFound(t *testing.T) {
	path, err := Write(t.TempDir(), 1, sample())
	require.NoError(t, err)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	check := func(b []byte, format string, args ...any) {
		require.NoError(t, os.WriteFile(path, b, 0o600))
		_, err := Read(path)
		require.ErrorIs(t, err, ErrDamaged, fmt.Sprintf(format, args...))
		require.ErrorContains(t, err, path)
		require.ErrorIs(t, Verify(path), ErrDamaged, fmt.Sprintf(format, args...))
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		check(bad, "bit %d of byte %d", i%8, i)
	}
	for n := range good {
		check(good[:n], "cut after %d bytes", n)
	}
	check(append(bytes.Clone(good), 0), "a byte more")
	check([]byte("not a checkpoint at all, but long enough to look at"), "garbage")
	check(assemble(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, []byte{1}), "no checksum")
}

func TestHeaderErrors(t *testing.T) {
	entry := func(dtype, shape, offsets string) string {
		return `"x":{"dtype":"` + dtype + `","shape":` + shape + `,"data_offsets":` + offsets + `}`
	}
	good := entry("F32", "[1]", "[0,4]")
	for _, c := range []struct{ about, header, want string }{
		{"empty", ``, "ends too early"},
		{"list", `[]`, "where an object should start"},
		{"cut", `{` + good, "ends too early"},
		{"cut in an entry", `{"x":{"dtype":"F32","shape":[1`, "ends too early"},
		{"after", `{` + good + `} x`, "bytes after its end"},
		{"twice", `{` + good + `,` + good + `}`, `"x" comes twice`},
		{"metadata twice", `{"__metadata__":{"a":"","a":""},` + good + `}`, `"a" comes twice`},
		{"metadata number", `{"__metadata__":{"a":1},` + good + `}`, `metadata "a" is no string`},
		{"metadata list", `{"__metadata__":[],` + good + `}`, "where an object should start"},
		{"type", `{` + entry("F99", "[1]", "[0,4]") + `}`, `unknown type "F99"`},
		{"missing", `{"x":{"dtype":"F32","shape":[1]}}`, "needs dtype, shape and two data_offsets"},
		{"null shape", `{` + entry("F32", "null", "[0,4]") + `}`, "needs dtype"},
		{"three offsets", `{` + entry("F32", "[1]", "[0,4,8]") + `}`, "needs dtype"},
		{"unknown field", `{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"z":0}}`, `unknown field "z"`},
		{"negative size", `{` + entry("F32", "[-1]", "[0,4]") + `}`, "do not make [-1] of F32"},
		{"negative offset", `{` + entry("F32", "[1]", "[-4,0]") + `}`, `tensor "x"`},
		{"backwards", `{` + entry("F32", "[1]", "[4,0]") + `}`, "bytes 4 to 0"},
		{"size", `{` + entry("F32", "[2]", "[0,4]") + `}`, "do not make [2] of F32"},
		{"overflow", `{` + entry("F32", "[4611686018427387904,4,4]", "[0,0]") + `}`, "do not make"},
		{"past the end", `{` + entry("F32", "[4]", "[0,16]") + `}`, "take 16 bytes, the file has 4"},
		{"gap at the start", `{` + entry("U8", "[3]", "[1,4]") + `}`, "starts at byte 1, the one before ends at 0"},
		{"gap at the end", `{` + entry("U8", "[3]", "[0,3]") + `}`, "take 3 bytes, the file has 4"},
		{"overlap", `{` + good + `,"y":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}`, "starts at byte 2, the one before ends at 4"},
	} {
		_, err := decode(assemble(c.header, make([]byte, 4)))
		require.ErrorContains(t, err, c.want, c.about)
		require.ErrorIs(t, err, ErrDamaged, c.about)
	}
	for _, n := range []uint64{1 << 63, 1<<64 - 1, maxHeader + 1, 3} {
		b := append(binary.LittleEndian.AppendUint64(nil, n), "{}"...)
		_, err := decode(b)
		require.ErrorContains(t, err, fmt.Sprintf("a header of %d bytes in a file of 10", n))
	}
}

func TestWriteRefusesStates(t *testing.T) {
	x := Tensor{Name: "x", Type: device.F32, Shape: []int{1}, Data: make([]byte, 4)}
	with := func(change func(*Tensor)) State {
		y := x
		change(&y)
		return State{Tensors: []Tensor{y}}
	}
	for want, state := range map[string]State{
		"is empty":      with(func(y *Tensor) { y.Name = "" }),
		"reserved":      with(func(y *Tensor) { y.Name = metadataKey }),
		"not UTF-8":     with(func(y *Tensor) { y.Name = "\xff" }),
		"taken":         {Tensors: []Tensor{x, x}},
		"type(99)":      with(func(y *Tensor) { y.Type = 99 }),
		"[2] of f32":    with(func(y *Tensor) { y.Shape = []int{2} }),
		"[-1] of f32":   with(func(y *Tensor) { y.Shape = []int{-1} }),
		"is reserved":   {Metadata: map[string]string{checksumKey: ""}},
		"must be UTF-8": {Metadata: map[string]string{"a": "\xff"}},
	} {
		dir := t.TempDir()
		_, err := Write(dir, 1, state)
		require.ErrorContains(t, err, want)
		require.Empty(t, files(t, dir))
	}
	_, err := Write(t.TempDir(), -1, State{})
	require.ErrorContains(t, err, "step -1")
}

func FuzzDecode(f *testing.F) {
	path, err := Write(f.TempDir(), 1, sample())
	require.NoError(f, err)
	good, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(good)
	f.Add(assemble(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, make([]byte, 4)))
	f.Add(assemble(`{}`, nil))
	f.Add(good[:40])
	f.Fuzz(func(t *testing.T, b []byte) {
		state, err := decode(b)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		for _, x := range state.Tensors {
			n, ok := bytesOf(x.Type, x.Shape)
			require.True(t, ok)
			require.Len(t, x.Data, int(n))
		}
	})
}
