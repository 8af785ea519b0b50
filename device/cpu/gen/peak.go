package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// peakSums are independent sums, enough to hide the latency of two units.
const peakSums = 12

// peak emits a loop of nothing but fused sums: what a processor can do at most.
func peak(name string, vector func() VecVirtual) {
	function(name, "func(n int)", "does n > 0 rounds of 12 fused multiplications and additions of vectors, for benchmarks to compare with.")
	n := Load(Param("n"), GP64())
	sums, factor := make([]VecVirtual, peakSums), vector()
	for i := range sums {
		sums[i] = vector()
		VXORPS(sums[i], sums[i], sums[i])
	}
	VXORPS(factor, factor, factor)
	Label("loop")
	for _, s := range sums {
		VFMADD231PS(factor, factor, s)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	end()
}
