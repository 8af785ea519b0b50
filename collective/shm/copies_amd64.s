//go:build linux

#include "textflag.h"

// The memory's own prefetching stops at each page of 4 KiB.
#define AHEAD 2048

// PREFETCHW n(SI): a line that another processor has comes once, to be owned.
#define CLAIM_SI(n) BYTE $0x0f; BYTE $0x0d; BYTE $0x8e; LONG $(n)

// func copyAheadAVX2(dst, src unsafe.Pointer, n int)
//
// n is a multiple of 128.
TEXT ·copyAheadAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

block:
	PREFETCHT0 AHEAD(SI)
	PREFETCHT0 AHEAD+64(SI)
	VMOVDQU    (SI), Y0
	VMOVDQU    32(SI), Y1
	VMOVDQU    64(SI), Y2
	VMOVDQU    96(SI), Y3
	VMOVDQU    Y0, (DI)
	VMOVDQU    Y1, 32(DI)
	VMOVDQU    Y2, 64(DI)
	VMOVDQU    Y3, 96(DI)
	ADDQ       $128, SI
	ADDQ       $128, DI
	SUBQ       $128, CX
	JNZ        block
	VZEROUPPER
	RET

// func exchangeAVX2(dst, src, dst2, src2 unsafe.Pointer, n int)
//
// copies two blocks side by side: while one waits for another processor's lines,
// the other waits for memory. The lines of src are fetched for writing, as the
// caller will write there. n is a multiple of 128.
TEXT ·exchangeAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ dst2+16(FP), R8
	MOVQ src2+24(FP), R9
	MOVQ n+32(FP), CX

block:
	CLAIM_SI(AHEAD)
	CLAIM_SI(AHEAD+64)
	PREFETCHT0 AHEAD(R9)
	PREFETCHT0 AHEAD+64(R9)
	VMOVDQU    (SI), Y0
	VMOVDQU    32(SI), Y1
	VMOVDQU    64(SI), Y2
	VMOVDQU    96(SI), Y3
	VMOVDQU    Y0, (DI)
	VMOVDQU    Y1, 32(DI)
	VMOVDQU    Y2, 64(DI)
	VMOVDQU    Y3, 96(DI)
	VMOVDQU    (R9), Y4
	VMOVDQU    32(R9), Y5
	VMOVDQU    64(R9), Y6
	VMOVDQU    96(R9), Y7
	VMOVDQU    Y4, (R8)
	VMOVDQU    Y5, 32(R8)
	VMOVDQU    Y6, 64(R8)
	VMOVDQU    Y7, 96(R8)
	ADDQ       $128, SI
	ADDQ       $128, DI
	ADDQ       $128, R8
	ADDQ       $128, R9
	SUBQ       $128, CX
	JNZ        block
	VZEROUPPER
	RET

// func copyPastCacheAVX2(dst, src unsafe.Pointer, n int)
//
// dst is a multiple of 32, n one of 128. The stores are complete for everybody
// when it returns.
TEXT ·copyPastCacheAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

block:
	VMOVDQU  (SI), Y0
	VMOVDQU  32(SI), Y1
	VMOVDQU  64(SI), Y2
	VMOVDQU  96(SI), Y3
	VMOVNTDQ Y0, (DI)
	VMOVNTDQ Y1, 32(DI)
	VMOVNTDQ Y2, 64(DI)
	VMOVNTDQ Y3, 96(DI)
	ADDQ     $128, SI
	ADDQ     $128, DI
	SUBQ     $128, CX
	JNZ      block
	SFENCE
	VZEROUPPER
	RET
