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

// farSlab is the bytes from position to position from which all of them lie behind
// the second-level cache; fetching what is near takes longer than to wait for it.
const farSlab = 32 << 10

// nearAndFar emits a kernel for positions that are slab bytes apart, near ones and
// far ones.
func (e *transform) nearAndFar(slab Register, emit func(name string, far bool)) {
	if e.resident {
		CMPQ(slab, U32(farSlab))
		JGE(LabelRef("far"))
	}
	emit("", false)
	end()
	if e.resident {
		Label("far")
		emit("far", true)
		end()
	}
}

// fetchTiles fetches the positions of a tile further on.
func (e *transform) fetchTiles(r *rows) {
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
