package cpu

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// eachFast runs a test on every kernel set with assembly that this processor can
// run; the portable one is what they are compared with.
func eachFast(t *testing.T, test func(t *testing.T, fast *kernelSet)) {
	for _, c := range fastKernels() {
		if c.lacks == "" {
			t.Run(c.name, func(t *testing.T) { test(t, c.build()) })
		}
	}
}

// TestTiles compares all numbers of rows, steps and panels, and all flags,
// with the portable tile on small integers, whose sums are exact.
func TestTiles(t *testing.T) { eachFast(t, testTiles) }

func testTiles(t *testing.T, fast *kernelSet) {
	plain := portableKernels()
	random := rand.New(rand.NewPCG(1, 2))
	integers := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(random.IntN(9) - 4)
		}
		return x
	}
	for rows := 1; rows <= 26; rows++ {
		for _, steps := range [][2]int{{0, 0}, {0, 1}, {0, 7}, {1, 0}, {2, 3}} {
			depth := steps[0]*tileColumns + steps[1]
			for flags := range 12 { // the last four would be flagMask with flagClear
				for _, columns := range []int{1, 15, 16, 33, 48} {
					a, b := integers(rows*depth+16), integers(panels(columns)*depth*tileColumns+16)
					bias, c := integers(panels(columns)*tileColumns), integers(rows*panels(columns)*tileColumns)
					want := append([]float32(nil), c...)
					for set, out := range map[*kernelSet][]float32{fast: c, plain: want} {
						runTileOver(set, rows, columns, steps, flags, a, b, bias, out)
					}
					require.Equal(t, want, c, "%d rows, %v steps, flags %b, %d columns", rows, steps, flags, columns)
				}
			}
		}
	}
}

// runTileOver multiplies rows of a by the panels of b into rows of c.
func runTileOver(set *kernelSet, count, columns int, steps [2]int, flags int, a, b, bias, c []float32) {
	depth, wide := steps[0]*tileColumns+steps[1], panels(columns)*tileColumns
	rows, table := make([]row, count), make([]int64, steps[0]+steps[1])
	for i := range rows {
		rows[i] = row{int64(i * depth * 4), int64(i * wide * 4)}
	}
	for s := range table {
		table[s] = int64(4 * (min(s, steps[0])*tileColumns + max(0, s-steps[0])))
	}
	var mask columnMask
	mask.last(columns)
	u := tile{
		a: address(a, 0), b: address(b, 0), c: address(c, 0), steps: unsafe.Pointer(unsafe.SliceData(table)),
		bias: address(bias, 0), mask: unsafe.Pointer(&mask), blocks: steps[0], singles: steps[1], flags: flags,
		panels: panels(columns), strideB: depth * tileColumns * 4, strideC: tileColumns * 4,
	}
	runTile(set.tile, &u, rows)
}

// TestLinesAndTurns: what packs and unpacks products moves every float to its
// place and nothing beside it.
func TestLinesAndTurns(t *testing.T) { eachFast(t, testLinesAndTurns) }

func testLinesAndTurns(t *testing.T, fast *kernelSet) {
	ramp := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i%4096 - 2048)
		}
		return x
	}
	for rows := range 19 {
		for count := range 6 {
			stride, next := count*tileColumns+3, rows*tileColumns+5
			src := ramp(rows*stride + 16)
			want, got := ramp(count*next+16), ramp(count*next+16)
			portableLines(want, src, stride, next, rows, count)
			fast.lines(got, src, stride, next, rows, count)
			require.Equal(t, want, got, "%d rows of %d lines", rows, count)
		}
	}
	const stride = tileColumns + 3
	for count := 1; count <= tileColumns; count++ {
		for width := 1; width <= tileColumns; width++ {
			for _, flags := range []int{0, flagAccumulate, flagReLU, flagAccumulate | flagReLU} {
				for _, bias := range [][]float32{nil, ramp(tileColumns)} {
					src, want, got := ramp(tileColumns*tileColumns), ramp(tileColumns*stride), ramp(tileColumns*stride)
					portableTurn(want, src, bias, stride, count, width, flags)
					fast.turn(got, src, bias, stride, count, width, flags)
					require.Equal(t, want, got, "%d rows of %d, flags %b", count, width, flags)
				}
			}
		}
	}
}
