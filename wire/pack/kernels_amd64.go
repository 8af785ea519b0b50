package pack

import "golang.org/x/sys/cpu"

// kernels code whole blocks in vectors: of bytes with masks, where the processor has
// AVX-512 with VBMI2, or else by AVX2 and BMI2.
type kernels struct{ avx2, avx512 bool }

func chosenKernels() kernels {
	x := &cpu.X86
	avx2 := x.HasAVX2 && x.HasBMI1 && x.HasBMI2 && x.HasPOPCNT
	return kernels{avx2, avx2 && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VBMI && x.HasAVX512VBMI2}
}

func (k kernels) fast() bool { return k.avx2 || k.avx512 }

// encode makes a coded block of src and returns its length, or 0 where it cannot. It
// writes up to blockSpace bytes.
func (k kernels) encode(dst, src []byte, kind Kind, space *scratch) int {
	if !k.fast() || len(src) != blockLen*kind.Size() || len(dst) < blockSpace {
		return 0
	}
	to, from, exponents, escapes := &dst[0], &src[0], &space.exponents[0], &space.escapes[0]
	switch {
	case kind == F32 && k.avx512:
		return encodeF32AVX512(to, from, exponents, escapes)
	case kind == F16 && k.avx512:
		return encodeF16AVX512(to, from, exponents, escapes)
	case k.avx512:
		return encodeBF16AVX512(to, from, exponents, escapes)
	case kind == F32:
		return encodeF32AVX2(to, from, exponents)
	case kind == F16:
		return encodeF16AVX2(to, from, exponents)
	}
	return encodeBF16AVX2(to, from, exponents)
}

// decode decodes a coded block, whatever its bytes, of which it may read blockSpace,
// and returns its length, or 0 where it cannot.
func (k kernels) decode(dst, src []byte, kind Kind, space *scratch) int {
	if !k.fast() || len(dst) != blockLen*kind.Size() || len(src) < blockSpace {
		return 0
	}
	to, from, exponents, escapes := &dst[0], &src[0], &space.exponents[0], &space.escapes[0]
	switch {
	case kind == F32 && k.avx512:
		return decodeF32AVX512(to, from, exponents, escapes)
	case kind == F16 && k.avx512:
		return decodeF16AVX512(to, from, exponents, escapes)
	case k.avx512:
		return decodeBF16AVX512(to, from, exponents, escapes)
	case kind == F32:
		return decodeF32AVX2(to, from, exponents)
	case kind == F16:
		return decodeF16AVX2(to, from, exponents)
	}
	return decodeBF16AVX2(to, from, exponents)
}
