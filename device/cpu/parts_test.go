package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestPartsOffsets holds the offsets that gen/amx.go names.
func TestPartsOffsets(t *testing.T) {
	var p partsProduct
	for i, offset := range []uintptr{
		unsafe.Offsetof(p.a), unsafe.Offsetof(p.b), unsafe.Offsetof(p.c), unsafe.Offsetof(p.positions), unsafe.Offsetof(p.panels),
		unsafe.Offsetof(p.chunks), unsafe.Offsetof(p.strideA), unsafe.Offsetof(p.partA), unsafe.Offsetof(p.secondA),
		unsafe.Offsetof(p.strideB), unsafe.Offsetof(p.panelB), unsafe.Offsetof(p.strideC), unsafe.Offsetof(p.panelC),
		unsafe.Offsetof(p.rowC), unsafe.Offsetof(p.secondC), unsafe.Offsetof(p.accumulate), unsafe.Offsetof(p.shape),
	} {
		require.Equal(t, uintptr(8*i), offset, "field %d", i)
	}
	require.EqualValues(t, 64, unsafe.Sizeof(p.shape))
	require.EqualValues(t, 16, unsafe.Offsetof(p.shape.bytes))
	require.EqualValues(t, 48, unsafe.Offsetof(p.shape.rows))
}

// partsSet returns the kernels that have products in parts, or nil here.
func partsSet(t *testing.T) *kernelSet {
	for _, c := range candidates() {
		if c.lacks == "" {
			if set := c.build(); set.parts.product != nil {
				return set
			}
		}
	}
	t.Log("no matrix unit here")
	return nil
}

// TestSplitOfTinyNumbers: what a number below 2^-110 loses stays out of the half of
// its neighbour.
func TestSplitOfTinyNumbers(t *testing.T) {
	set := partsSet(t)
	if set == nil {
		return
	}
	random := rand.New(rand.NewPCG(1, 2))
	first, second := make([]float32, tileColumns), make([]float32, tileColumns)
	for range 1000 {
		for i := range first {
			first[i] = float32(random.NormFloat64())
			second[i] = math.Float32frombits(random.Uint32N(1 << 27)) // below 2^-110, denormal ones too
			if random.IntN(2) == 0 {
				first[i], second[i] = second[i], first[i]
			}
		}
		parts := make([]float32, 3*tileColumns)
		set.parts.split(parts, first, second, tileColumns, tileColumns, 1)
		words := unsafe.Slice((*uint32)(unsafe.Pointer(&parts[0])), len(parts))
		for i := range first {
			var low, high float64
			for part := range 3 {
				word := words[part*tileColumns+i]
				low += float64(bfloat(word << 16))
				high += float64(bfloat(word &^ 0xffff))
			}
			require.InDelta(t, first[i], low, 0x1p-133)
			require.InDelta(t, second[i], high, 0x1p-133)
		}
	}
}

// TestSplitIsExact: the parts of a number add up to it, each with 8 bits, and go
// to the half of a word that is theirs.
func TestSplitIsExact(t *testing.T) {
	set := partsSet(t)
	if set == nil {
		return
	}
	random := rand.New(rand.NewPCG(1, 2))
	const n = 3
	first, second := make([]float32, n*tileColumns), make([]float32, n*tileColumns)
	for i := range first {
		first[i] = float32(random.NormFloat64()) * float32(int64(1)<<random.IntN(60))
		second[i] = float32(random.NormFloat64()) / float32(int64(1)<<random.IntN(60))
	}
	parts := make([]float32, 3*n*tileColumns)
	set.parts.split(parts, first, second, tileColumns, n*tileColumns, n)
	words := unsafe.Slice((*uint32)(unsafe.Pointer(&parts[0])), len(parts))
	for i := range first {
		var low, high float64
		for part := range 3 {
			word := words[part*n*tileColumns+i]
			low += float64(bfloat(word << 16))
			high += float64(bfloat(word &^ 0xffff))
		}
		require.Equal(t, float64(first[i]), low)
		require.Equal(t, float64(second[i]), high)
	}

	rows := []row{{a: 2 * 64}, {a: 0}, {a: 64}}
	moved := make([]float32, len(parts))
	both := append(slices.Clone(first), second...)
	set.parts.splitRows(moved, unsafe.Pointer(&both[0]), &[2]int64{0, int64(len(first) * 4)}, rows, n*tileColumns)
	got := unsafe.Slice((*uint32)(unsafe.Pointer(&moved[0])), len(moved))
	for part := range 3 {
		for i, from := range []int{2, 0, 1} {
			at := part * n * tileColumns
			require.Equal(t, words[at+from*tileColumns:][:tileColumns], got[at+i*tileColumns:][:tileColumns])
		}
	}
}

// bfloat returns the float32 with those bits.
func bfloat(bits uint32) float32 { return *(*float32)(unsafe.Pointer(&bits)) }

// TestPartsProduct compares with sums in float64: whole numbers exactly, others
// as near as a sum of so many products in float32.
func TestPartsProduct(t *testing.T) {
	set := partsSet(t)
	if set == nil {
		return
	}
	random := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 15, 16, 17, 24, 31, 32} {
		for _, panels := range []int{1, 2, 3, 4} {
			for _, whole := range []bool{true, false} {
				x := partsExample{rows: n, panels: panels, chunks: 1 + random.IntN(3), positions: 1 + random.IntN(3)}
				x.check(t, set, random, whole)
			}
		}
	}
}

type partsExample struct{ rows, panels, chunks, positions int }

func (x partsExample) check(t *testing.T, set *kernelSet, random *rand.Rand, whole bool) {
	depth := x.chunks * partDepth
	numbers := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(random.NormFloat64())
			if whole {
				out[i] = float32(random.IntN(401) - 200)
			}
		}
		return out
	}
	columns := x.panels * tileColumns
	a, b, c := numbers(x.positions*x.rows*depth), numbers(x.positions*depth*columns), numbers(x.positions*x.panels*x.rows*tileColumns)
	left := make([]float32, x.positions*x.rows*chunkWords(x.chunks))
	right := make([]float32, x.positions*x.panels*x.chunks*panelWords)
	for p := range x.positions {
		for chunk := range x.chunks {
			at := a[p*x.rows*depth+chunk*partDepth:]
			set.parts.split(left[(p*x.chunks+chunk)*3*x.rows*block:], at, at[half:], depth, x.rows*block, x.rows)
			for panel := range x.panels {
				from := b[(p*depth+chunk*partDepth)*columns+panel*tileColumns:]
				set.parts.split(right[((p*x.panels+panel)*x.chunks+chunk)*panelWords:], from, from[half*columns:], columns, panelWords/3, half)
			}
		}
	}
	got := append([]float32(nil), c...)
	p := partsProduct{
		panels: x.panels, chunks: x.chunks, accumulate: 1,
		strideA: 3 * x.chunks * x.rows * 64, strideB: x.panels * x.chunks * panelWords * 4, panelB: x.chunks * panelWords * 4,
		strideC: x.panels * x.rows * 64, panelC: x.rows * 64,
	}
	p.setRows(x.rows, 64)
	p.a, p.b, p.c = address(left, 0), address(right, 0), address(got, 0)
	set.parts.run(&p, x.positions)
	for p := range x.positions {
		for i := range x.rows {
			for j := range columns {
				at := ((p*x.panels+j/tileColumns)*x.rows+i)*tileColumns + j%tileColumns
				want := float64(c[at])
				for k := range depth {
					want += float64(a[(p*x.rows+i)*depth+k]) * float64(b[(p*depth+k)*columns+j])
				}
				if whole {
					require.Equal(t, want, float64(got[at]), "%+v, position %d, element %d %d", x, p, i, j)
					continue
				}
				// The sums of up to 96 products of standard normal numbers are about 10.
				require.InDelta(t, want, got[at], 2e-5, "%+v, position %d, element %d %d", x, p, i, j)
			}
		}
	}
}
