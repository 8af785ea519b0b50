package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// laneRows is the rows of a full group: their sums hide the latency of a
// multiplication.
const laneRows = 4

// apart emits the tile whose columns do not mix.
func apart() {
	function("apartAVX2", "func(t *uint64)", "computes the tile of lanes at t, of groups rows; neither those nor its singles are 0.")
	t, rows, left, steps, b, step, count := param("t"), GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	base := make([]Register, laneRows)
	for i := range base {
		base[i] = GP64()
	}
	MOVQ(at(t, tileRows), rows)
	MOVQ(at(t, tileGroups), left)
	for _, n := range []int{laneRows, 1} {
		name := fmt.Sprintf("rows%d", n)
		Label(name)
		CMPQ(left, U32(n))
		JLT(LabelRef(name + "done"))
		sums := vectors(2 * n)
		for i := range n {
			MOVQ(at(rows, 16*i), base[i])
			ADDQ(at(t, tileA), base[i])
			VXORPS(sums[2*i], sums[2*i], sums[2*i])
			VXORPS(sums[2*i+1], sums[2*i+1], sums[2*i+1])
		}
		MOVQ(at(t, tileB), b)
		MOVQ(at(t, tileSteps), steps)
		MOVQ(at(t, tileSingles), count)
		loop(name+"step", count, func() {
			low, high := YMM(), YMM()
			MOVQ(at(steps, 0), step)
			VMOVUPS(at(b, 0), low)
			VMOVUPS(at(b, 32), high)
			for i := range n {
				VFMADD231PS(Mem{Base: base[i], Index: step, Scale: 1}, low, sums[2*i])
				VFMADD231PS(Mem{Base: base[i], Index: step, Scale: 1, Disp: 32}, high, sums[2*i+1])
			}
			ADDQ(U32(8), steps)
			ADDQ(U32(64), b)
		})
		laneStore(t, rows, base[:n], sums, steps, name)
		ADDQ(U32(16*n), rows)
		SUBQ(U32(n), left)
		JMP(LabelRef(name))
		Label(name + "done")
	}
	end()
}

// laneStore adds what C holds and the bias, as the tile says, and stores.
func laneStore(t, rows Register, base []Register, sums []VecVirtual, scratch Register, name string) {
	for i := range base {
		MOVQ(at(rows, 16*i+8), base[i])
		ADDQ(at(t, tileC), base[i])
	}
	MOVQ(at(t, tileFlags), scratch)
	TESTQ(U32(flagAccumulate), scratch)
	JZ(LabelRef(name + "fresh"))
	for i, s := range sums {
		VADDPS(at(base[i/2], i%2*32), s, s)
	}
	Label(name + "fresh")
	MOVQ(at(t, tileBias), scratch)
	TESTQ(scratch, scratch)
	JZ(LabelRef(name + "unbiased"))
	for i, s := range sums {
		VADDPS(at(scratch, i%2*32), s, s)
	}
	Label(name + "unbiased")
	for i, s := range sums {
		VMOVUPS(s, at(base[i/2], i%2*32))
	}
}
