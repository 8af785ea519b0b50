// Command gen writes the assembly of package cpu, one family of kernels a run.
// It is a module of its own so that the product does not depend on avo. Run it
// from this folder:
//
//	go run . -family avx2 -out ../avx2_amd64.s -stubs ../stubs_avx2_amd64.go -pkg cpu
package main

import (
	"flag"
	"fmt"
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// families are the kernels of one file each, by the name of the file.
func families() map[string]func() {
	return map[string]func(){
		"avx2":        avx2,
		"avx512":      avx512,
		"winograd2":   winogradAVX2,
		"winograd512": winogradAVX512,
		"amx":         amx,

		"functions2":   func() { functions(lanes8()) },
		"functions512": func() { functions(lanes16()) },
		"windows2":     func() { windows(lanes8()) },
		"windows512":   func() { windows(lanes16()) },
		"halves512":    halves512,
		"layers2":      layers,
		"wire2":        wires,     // of package wire, in ../../../wire
		"floats512":    floats512, // of package pack, in ../../../wire/pack
		"floats2":      floats2,
	}
}

func main() {
	family := flag.String("family", "", "the kernels to write")
	flag.Parse()
	write := families()[*family]
	if write == nil {
		fmt.Fprintf(os.Stderr, "gen: unknown family %q\n", *family)
		os.Exit(2)
	}
	write()
	Generate()
}

func avx2() {
	tile()
	transpose()
	binary("addAVX2", "adds", func(a, b VecVirtual) { VADDPS(b, a, a) })
	binary("mulAVX2", "multiplies", func(a, b VecVirtual) { VMULPS(b, a, a) })
	binary("maxAVX2", "takes the larger of", func(a, b VecVirtual) { keepNaN(a, b, VMAXPS) })
	binary("minAVX2", "takes the smaller of", func(a, b VecVirtual) { keepNaN(a, b, VMINPS) })
	scale()
	relu()
	reluBackward("reluBackwardAVX2", false)
	reluBackward("reluBackwardAddAVX2", true)
	halves()
	sgd()
	sgdMomentum("sgdMomentumAVX2", false)
	sgdMomentum("sgdNesterovAVX2", true)
	adam()
	sumSquares()
	moments()
	normForward()
	normBackwardSums()
	normBackwardOutputs()
	peak("peakAVX2", YMM)
}

func avx512() {
	tilesAVX512()
	transpose512()
	turn()
	lines()
	peak("peakAVX512", ZMM)
}

// function starts a function that neither grows the stack nor lets its
// arguments escape.
func function(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
}

// end returns, leaving the upper halves of the registers clean for SSE code.
func end() {
	VZEROUPPER()
	RET()
}

// pointers loads pointer parameters.
func pointers(names ...string) []Register {
	var out []Register
	for _, name := range names {
		out = append(out, Load(Param(name), GP64()))
	}
	return out
}

// at returns the memory at a byte offset of base.
func at(base Register, offset int) Mem { return Mem{Base: base, Disp: offset} }

// vectors returns n fresh vector registers.
func vectors(n int) []VecVirtual {
	out := make([]VecVirtual, n)
	for i := range out {
		out[i] = YMM()
	}
	return out
}

// zero returns a cleared vector register.
func zero() VecVirtual {
	z := YMM()
	VXORPS(z, z, z)
	return z
}

// broadcasts returns vectors filled with the floats at base.
func broadcasts(base Register, n int) []VecVirtual {
	out := vectors(n)
	for i, v := range out {
		VBROADCASTSS(at(base, 4*i), v)
	}
	return out
}

// each emits body for all n units of bytes, unroll at a time and then one at a
// time; body gets the byte offset of its unit from the pointers.
func each(label string, n Register, unroll, bytes int, moving []Register, body func(offset int)) {
	for _, count := range []int{unroll, 1} {
		top, done := label+"loop"+suffix(count), label+"done"+suffix(count)
		Label(top)
		CMPQ(n, U32(count))
		JLT(LabelRef(done))
		for u := range count {
			body(u * bytes)
		}
		for _, p := range moving {
			ADDQ(U32(count*bytes), p)
		}
		SUBQ(U32(count), n)
		JMP(LabelRef(top))
		Label(done)
		if unroll == 1 {
			return
		}
	}
}

func suffix(count int) string {
	if count == 1 {
		return "One"
	}
	return "Many"
}
