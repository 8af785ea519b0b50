package pack

import "golang.org/x/sys/cpu"

// kernels code whole blocks in vectors of bytes, where the processor has AVX-512
// with VBMI2.
type kernels struct{ avx512 bool }

func chosenKernels() kernels {
	x := &cpu.X86
	return kernels{x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VBMI && x.HasAVX512VBMI2 && x.HasBMI2 && x.HasPOPCNT}
}

func (k kernels) fast() bool { return k.avx512 }

// encode makes a coded block of src and returns its length, or 0 where it cannot. It
// writes up to blockSpace bytes.
func (k kernels) encode(dst, src []byte, kind Kind, space *scratch) int {
	if !k.avx512 || len(src) != blockLen*kind.Size() || len(dst) < blockSpace {
		return 0
	}
	to, from := &dst[0], &src[0]
	switch kind {
	case F16:
		return encodeF16AVX512(to, from, &space.exponents[0], &space.escapes[0])
	case BF16:
		return encodeBF16AVX512(to, from, &space.exponents[0], &space.escapes[0])
	}
	return encodeF32AVX512(to, from, &space.exponents[0], &space.escapes[0])
}

// decode decodes a coded block, whatever its bytes, of which it may read blockSpace,
// and returns its length, or 0 where it cannot.
func (k kernels) decode(dst, src []byte, kind Kind, space *scratch) int {
	if !k.avx512 || len(dst) != blockLen*kind.Size() || len(src) < blockSpace {
		return 0
	}
	to, from := &dst[0], &src[0]
	switch kind {
	case F16:
		return decodeF16AVX512(to, from, &space.exponents[0], &space.escapes[0])
	case BF16:
		return decodeBF16AVX512(to, from, &space.exponents[0], &space.escapes[0])
	}
	return decodeF32AVX512(to, from, &space.exponents[0], &space.escapes[0])
}
