package cpu

import "unsafe"

// Matrix units multiply numbers of bfloat16 and add up in float32. A float32 has
// 24 bits and is the exact sum of three parts of 8: high, middle and low. Of the
// nine products of parts the six largest make a product that is off by 2^-25 of
// it at most, in most cases far less, which is less than the rounding of the sums
// (the method of Henry, Tang and Heinecke, arXiv:1904.06376). Whole numbers below
// 2^24 are exact. An infinity becomes NaN, so that products that have to pass it
// on go another way; and numbers below 2^-110 lose their low parts.

// partKernels are what a matrix unit has to supply; nil without.
type partKernels struct {
	// split cuts n lines of 16 pairs, one number of each from first and from
	// second, step floats from line to line, into lines of parts of words: high
	// ones at dst, middle ones part floats behind, low ones as much behind them.
	split func(dst, first, second []float32, step, part, n int)
	// splitRows is split for lines at the offsets of rows from base, steps further
	// for the two of a pair. Only a sum of all has to lie in base's memory.
	splitRows func(dst []float32, base unsafe.Pointer, steps *[2]int64, rows []row, part int)
	// product computes p, whose positions are not 0 and not too many.
	product func(p *partsProduct)
}

const (
	// partRows is the most rows of A, partDepth the steps of one chunk.
	partRows  = 32
	partDepth = 32
	// panelWords is the words of a chunk of a panel: parts x pairs x columns.
	panelWords = 3 * partDepth / 2 * tileColumns
	// maxPartsWork bounds the chunks of pairs of panels of one call, as maxTileWork
	// does for a tile.
	maxPartsWork = 320
)

// partsLen returns the words of a panel of so many floats, which are whole chunks.
func partsLen(floats int) int { return floats / (partDepth * tileColumns) * panelWords }

// partsProduct is a product of up to 32 rows with several panels, at each of
// several positions:
//
//	C[i][j] (+)= sum over k of A[i][k] * B[k][j]
//
// A is [position][chunk][part][row] of lines of 16 words, each of two parts of
// numbers of a chunk of 32; which two is the caller's choice, but the same in B,
// which is [position][panel][chunk][part][16 pairs][16 columns]. C is floats.
//
// The assembly reads the fields at fixed offsets: TestPartsOffsets holds them.
type partsProduct struct {
	a, b, c    unsafe.Pointer
	positions  int
	panels     int
	chunks     int
	strideA    int // bytes from a position to the next
	partA      int // bytes of a part: all rows
	secondA    int // bytes from the first group of rows to the second; 0 for one
	strideB    int
	panelB     int
	strideC    int
	panelC     int
	rowC       int
	secondC    int
	accumulate int
	shape      tileShape
}

// tileShape is what LDTILECFG loads: a palette, then bytes of a row and rows of
// each tile.
type tileShape struct {
	palette byte
	_       [15]byte
	bytes   [16]uint16
	rows    [16]byte
}

// setRows makes p one of n rows, whose C is rowC bytes a row.
func (p *partsProduct) setRows(n, rowC int) {
	first, second := n, 0
	if n > partRows/2 {
		first, second = (n+1)/2, n/2
	}
	p.partA, p.rowC = n*64, rowC
	p.secondA, p.secondC = 0, 0
	if second > 0 {
		p.secondA, p.secondC = first*64, first*rowC
	}
	p.shape.palette = 1
	for i, rows := range [8]int{first, first, second, second, first, second, partDepth / 2, partDepth / 2} {
		p.shape.rows[i], p.shape.bytes[i] = byte(rows), 64
		if rows == 0 {
			p.shape.bytes[i] = 0
		}
	}
}

// run computes all positions of p, a few at a time.
func (k *partKernels) run(p *partsProduct, positions int) {
	most := max(1, maxPartsWork/(p.chunks*((p.panels+1)/2)))
	for {
		p.positions = min(most, positions)
		k.product(p)
		if positions -= p.positions; positions == 0 {
			break
		}
		p.a, p.b, p.c = unsafe.Add(p.a, p.positions*p.strideA), unsafe.Add(p.b, p.positions*p.strideB), unsafe.Add(p.c, p.positions*p.strideC)
	}
	*p = partsProduct{}
}
