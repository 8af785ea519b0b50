//go:build linux

#include "textflag.h"

// Each kernel walks n bytes of all vectors at once: it adds srcs vectors from
// left to right and stores the sum in dsts vectors. src and dst are arrays of
// addresses.

// The memory's own prefetching stops at each page of 4 KiB.
#define AHEAD 2048

// What will be written is fetched for writing, ahead of where it is fetched for
// reading as a source: a line that another processor has then comes once, not
// once to be read and once more to be owned. PREFETCHW n(R10)(AX*1)
#define CLAIM(n) BYTE $0x41; BYTE $0x0f; BYTE $0x0d; BYTE $0x8c; BYTE $0x02; LONG $(n)

#define PROLOGUE \
	MOVQ dst+0(FP), DI \
	MOVQ dsts+8(FP), R8 \
	MOVQ src+16(FP), SI \
	MOVQ srcs+24(FP), R9 \
	MOVQ n+32(FP), CX \
	XORQ AX, AX

#define WIDE(ADD) \
	PROLOGUE \
	LEAQ -(AHEAD+128)(CX), R12 \
block: \
	MOVQ    (SI), R10 \
	PREFETCHT0 AHEAD(R10)(AX*1) \
	PREFETCHT0 AHEAD+64(R10)(AX*1) \
	VMOVUPS (R10)(AX*1), Y0 \
	VMOVUPS 32(R10)(AX*1), Y1 \
	VMOVUPS 64(R10)(AX*1), Y2 \
	VMOVUPS 96(R10)(AX*1), Y3 \
	MOVQ    $1, R11 \
source: \
	CMPQ R11, R9 \
	JGE  store \
	MOVQ (SI)(R11*8), R10 \
	PREFETCHT0 AHEAD(R10)(AX*1) \
	PREFETCHT0 AHEAD+64(R10)(AX*1) \
	ADD  (R10)(AX*1), Y0, Y0 \
	ADD  32(R10)(AX*1), Y1, Y1 \
	ADD  64(R10)(AX*1), Y2, Y2 \
	ADD  96(R10)(AX*1), Y3, Y3 \
	INCQ R11 \
	JMP  source \
store: \
	XORQ R11, R11 \
destination: \
	MOVQ    (DI)(R11*8), R10 \
	VMOVUPS Y0, (R10)(AX*1) \
	VMOVUPS Y1, 32(R10)(AX*1) \
	VMOVUPS Y2, 64(R10)(AX*1) \
	VMOVUPS Y3, 96(R10)(AX*1) \
	CMPQ    AX, R12 \
	JGE     claimed \
	CLAIM(AHEAD+128) \
	CLAIM(AHEAD+192) \
claimed: \
	INCQ    R11 \
	CMPQ    R11, R8 \
	JLT     destination \
	ADDQ    $128, AX \
	CMPQ    AX, CX \
	JLT     block \
	VZEROUPPER \
	RET

// func sumF32AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)
TEXT ·sumF32AVX2(SB), NOSPLIT, $0-40
	WIDE(VADDPS)

// func sumF64AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)
TEXT ·sumF64AVX2(SB), NOSPLIT, $0-40
	WIDE(VADDPD)

// func sumI32AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)
TEXT ·sumI32AVX2(SB), NOSPLIT, $0-40
	WIDE(VPADDD)

// func sumI64AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)
TEXT ·sumI64AVX2(SB), NOSPLIT, $0-40
	WIDE(VPADDQ)

// func sumF16AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)
//
// 64 halves a round; sums in float32, rounded once to the nearest, ties to even.
TEXT ·sumF16AVX2(SB), NOSPLIT, $0-40
	PROLOGUE

block:
	MOVQ      (SI), R10
	VCVTPH2PS (R10)(AX*1), Y0
	VCVTPH2PS 16(R10)(AX*1), Y1
	VCVTPH2PS 32(R10)(AX*1), Y2
	VCVTPH2PS 48(R10)(AX*1), Y3
	VCVTPH2PS 64(R10)(AX*1), Y4
	VCVTPH2PS 80(R10)(AX*1), Y5
	VCVTPH2PS 96(R10)(AX*1), Y6
	VCVTPH2PS 112(R10)(AX*1), Y7
	MOVQ      $1, R11

source:
	CMPQ      R11, R9
	JGE       store
	MOVQ      (SI)(R11*8), R10
	VCVTPH2PS (R10)(AX*1), Y8
	VCVTPH2PS 16(R10)(AX*1), Y9
	VCVTPH2PS 32(R10)(AX*1), Y10
	VCVTPH2PS 48(R10)(AX*1), Y11
	VCVTPH2PS 64(R10)(AX*1), Y12
	VCVTPH2PS 80(R10)(AX*1), Y13
	VCVTPH2PS 96(R10)(AX*1), Y14
	VCVTPH2PS 112(R10)(AX*1), Y15
	VADDPS    Y8, Y0, Y0
	VADDPS    Y9, Y1, Y1
	VADDPS    Y10, Y2, Y2
	VADDPS    Y11, Y3, Y3
	VADDPS    Y12, Y4, Y4
	VADDPS    Y13, Y5, Y5
	VADDPS    Y14, Y6, Y6
	VADDPS    Y15, Y7, Y7
	INCQ      R11
	JMP       source

store:
	VCVTPS2PH $0, Y0, X0
	VCVTPS2PH $0, Y1, X1
	VCVTPS2PH $0, Y2, X2
	VCVTPS2PH $0, Y3, X3
	VCVTPS2PH $0, Y4, X4
	VCVTPS2PH $0, Y5, X5
	VCVTPS2PH $0, Y6, X6
	VCVTPS2PH $0, Y7, X7
	XORQ      R11, R11

destination:
	MOVQ    (DI)(R11*8), R10
	VMOVUPS X0, (R10)(AX*1)
	VMOVUPS X1, 16(R10)(AX*1)
	VMOVUPS X2, 32(R10)(AX*1)
	VMOVUPS X3, 48(R10)(AX*1)
	VMOVUPS X4, 64(R10)(AX*1)
	VMOVUPS X5, 80(R10)(AX*1)
	VMOVUPS X6, 96(R10)(AX*1)
	VMOVUPS X7, 112(R10)(AX*1)
	INCQ    R11
	CMPQ    R11, R8
	JLT     destination
	ADDQ    $128, AX
	CMPQ    AX, CX
	JLT     block
	VZEROUPPER
	RET

// Y9 = 1, Y10 = 0x7fff, Y11 = 0x40 in each 32-bit lane. Rounds the float32 in Y
// to bfloat16 in the low half of each lane; NaN keeps its high bits and stays
// NaN. Uses Y12, Y13.
#define ROUND(Y) \
	VCMPPS   $3, Y, Y, Y12 \
	VPSRLD   $16, Y, Y13 \
	VPAND    Y9, Y13, Y13 \
	VPADDD   Y10, Y13, Y13 \
	VPADDD   Y, Y13, Y13 \
	VBLENDVPS Y12, Y, Y13, Y13 \
	VPSRLD   $16, Y13, Y13 \
	VPAND    Y11, Y12, Y12 \
	VPOR     Y12, Y13, Y

#define WIDEN(at, Y) \
	VPMOVZXWD at(R10)(AX*1), Y \
	VPSLLD    $16, Y, Y

// func sumBF16AVX2(dst *unsafe.Pointer, dsts int, src *unsafe.Pointer, srcs int, n int)
TEXT ·sumBF16AVX2(SB), NOSPLIT, $0-40
	PROLOGUE
	MOVL         $1, R10
	MOVQ         R10, X9
	VPBROADCASTD X9, Y9
	MOVL         $0x7fff, R10
	MOVQ         R10, X10
	VPBROADCASTD X10, Y10
	MOVL         $0x40, R10
	MOVQ         R10, X11
	VPBROADCASTD X11, Y11

block:
	MOVQ (SI), R10
	WIDEN(0, Y0)
	WIDEN(16, Y1)
	WIDEN(32, Y2)
	WIDEN(48, Y3)
	MOVQ $1, R11

source:
	CMPQ   R11, R9
	JGE    store
	MOVQ   (SI)(R11*8), R10
	WIDEN(0, Y4)
	WIDEN(16, Y5)
	WIDEN(32, Y6)
	WIDEN(48, Y7)
	VADDPS Y4, Y0, Y0
	VADDPS Y5, Y1, Y1
	VADDPS Y6, Y2, Y2
	VADDPS Y7, Y3, Y3
	INCQ   R11
	JMP    source

store:
	ROUND(Y0)
	ROUND(Y1)
	ROUND(Y2)
	ROUND(Y3)
	VPACKUSDW Y1, Y0, Y0
	VPERMQ    $0xd8, Y0, Y0
	VPACKUSDW Y3, Y2, Y2
	VPERMQ    $0xd8, Y2, Y2
	XORQ      R11, R11

destination:
	MOVQ    (DI)(R11*8), R10
	VMOVUPS Y0, (R10)(AX*1)
	VMOVUPS Y2, 32(R10)(AX*1)
	INCQ    R11
	CMPQ    R11, R8
	JLT     destination
	ADDQ    $64, AX
	CMPQ    AX, CX
	JLT     block
	VZEROUPPER
	RET
