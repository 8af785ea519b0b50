package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A transform reads and writes runs of a few lines in many places, too short for
// the processor to find out what comes next: the run that the next call is going
// to touch is fetched meanwhile.

// tilesAhead is how many bytes ahead tiles are fetched: a row of tiles of an image
// of 32 pixels, some rows of smaller ones.
const tilesAhead = 512

// fetchTiles fetches the positions of a tile further on.
func (e *transform) fetchTiles(r *rows) {
	if !e.resident {
		return
	}
	for j := range e.form.points {
		PREFETCHT0(r.at(j, tilesAhead))
	}
}

// below returns how far below a line the one of the next row of tiles lies, by the
// distance of the two lines in the middle, which are in the image where any are.
func (e *transform) below(lines []Register) Register {
	if !e.resident {
		return nil
	}
	distance, middle := GP64(), len(lines)/2
	MOVQ(lines[middle], distance)
	SUBQ(lines[middle-1], distance)
	SHLQ(U8(e.form.outputs/2), distance) // 2 or 4 lines
	return distance
}

// fetchBelow fetches the pixels so far below those of lines.
func (e *transform) fetchBelow(lines []Register, below Register) {
	if !e.resident {
		return
	}
	for _, r := range lines {
		PREFETCHT0(Mem{Base: r, Index: below, Scale: 1})
	}
}
