#include "textflag.h"
#include "neon_arm64.h"

// Lengths are multiples of 8 and may be 0. Nothing here fuses a product with a
// sum, but for sumSquaresNEON, whose products are exact.

// BINARY sets dst from eight elements of a (V0, V1) and b (V2, V3) at a time.
#define BINARY(op) \
	MOVD dst+0(FP), R0; \
	MOVD a+8(FP), R1; \
	MOVD b+16(FP), R2; \
	MOVD n+24(FP), R3; \
	CBZ R3, done; \
loop: \
	VLD1.P 32(R1), [V0.S4, V1.S4]; \
	VLD1.P 32(R2), [V2.S4, V3.S4]; \
	op(2, 0, V0, V2, 0); \
	op(3, 1, V1, V3, 1); \
	VST1.P [V0.S4, V1.S4], 32(R0); \
	SUB $8, R3; \
	CBNZ R3, loop; \
done: \
	RET

#define PLUS(b, a, va, vb, to) FADD4(b, a, to)
#define TIMES(b, a, va, vb, to) FMUL4(b, a, to)

// The greater of two, NaN when either is, b when they are equal.
#define GREATER(b, a, va, vb, to) \
	FABOVE4(b, a, 4); \
	FEQUAL4(a, a, 5); \
	KEEP(va, vb)

#define LESS(b, a, va, vb, to) \
	FABOVE4(a, b, 4); \
	FEQUAL4(a, a, 5); \
	KEEP(va, vb)

// KEEP leaves a where V4 is set or V5 is not, and takes b elsewhere.
#define KEEP(va, vb) \
	VORR V5.B16, V5.B16, V6.B16; \
	VEOR V7.B16, V6.B16, V6.B16; \
	VORR V4.B16, V6.B16, V6.B16; \
	VBIF V6.B16, vb.B16, va.B16

// PASS clears dy (a) where y (b) is not above zero; NaN passes.
#define PASS(b, a, va, vb, to) \
	FNOTABOVEZERO4(b, b); \
	BITCLEAR(b, a, to)

// func addNEON(dst, a, b *float32, n int)
TEXT ·addNEON(SB), NOSPLIT, $0-32
	BINARY(PLUS)

// func mulNEON(dst, a, b *float32, n int)
TEXT ·mulNEON(SB), NOSPLIT, $0-32
	BINARY(TIMES)

// func maxNEON(dst, a, b *float32, n int)
TEXT ·maxNEON(SB), NOSPLIT, $0-32
	VEOR V7.B16, V7.B16, V7.B16
	FEQUAL4(7, 7, 7) // all bits
	BINARY(GREATER)

// func minNEON(dst, a, b *float32, n int)
TEXT ·minNEON(SB), NOSPLIT, $0-32
	VEOR V7.B16, V7.B16, V7.B16
	FEQUAL4(7, 7, 7)
	BINARY(LESS)

// func reluBackwardNEON(dst, a, b *float32, n int)
TEXT ·reluBackwardNEON(SB), NOSPLIT, $0-32
	BINARY(PASS)

// func reluBackwardAddNEON(dx, dy, y *float32, n int)
TEXT ·reluBackwardAddNEON(SB), NOSPLIT, $0-32
	MOVD dx+0(FP), R0
	MOVD dy+8(FP), R1
	MOVD y+16(FP), R2
	MOVD n+24(FP), R3
	CBZ  R3, done

loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	VLD1   (R0), [V4.S4, V5.S4]
	PASS(2, 0, V0, V2, 0)
	PASS(3, 1, V1, V3, 1)
	FADD4(0, 4, 4)
	FADD4(1, 5, 5)
	VST1.P [V4.S4, V5.S4], 32(R0)
	SUB    $8, R3
	CBNZ   R3, loop

done:
	RET

// func scaleNEON(dst, a *float32, s float32, n int)
TEXT ·scaleNEON(SB), NOSPLIT, $0-32
	MOVD  dst+0(FP), R0
	MOVD  a+8(FP), R1
	FMOVS s+16(FP), F2
	MOVD  n+24(FP), R3
	VDUP  V2.S[0], V2.S4
	CBZ   R3, done

loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	FMUL4(2, 0, 0)
	FMUL4(2, 1, 1)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUB    $8, R3
	CBNZ   R3, loop

done:
	RET

// func reluNEON(y, x *float32, n int)
//
// Keeps NaN and -0.
TEXT ·reluNEON(SB), NOSPLIT, $0-24
	MOVD y+0(FP), R0
	MOVD x+8(FP), R1
	MOVD n+16(FP), R3
	CBZ  R3, done

loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	FBELOWZERO4(0, 2)
	FBELOWZERO4(1, 3)
	BITCLEAR(2, 0, 0)
	BITCLEAR(3, 1, 1)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUB    $8, R3
	CBNZ   R3, loop

done:
	RET

// SQUARES adds the squares of four floats of V16 to the float64 in V(s) and V(s+1).
#define SQUARES(v, s) \
	WIDENF32(v, 20); \
	WIDENF32HIGH(v, 21); \
	FMLA2(20, 20, s); \
	FMLA2(21, 21, (s+1))

// func sumSquaresNEON(out *float64, x *float32, blocks int)
//
// Sums the squares of each of blocks > 0 blocks of 128: 16 sums by position
// modulo 16, added in the order of cpu.portableSumSquares.
TEXT ·sumSquaresNEON(SB), NOSPLIT, $0-24
	MOVD out+0(FP), R0
	MOVD x+8(FP), R1
	MOVD blocks+16(FP), R2

block:
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	MOVD $8, R3

line:
	VLD1.P 64(R1), [V16.S4, V17.S4, V18.S4, V19.S4]
	SQUARES(16, 0)
	SQUARES(17, 2)
	SQUARES(18, 4)
	SQUARES(19, 6)
	SUB     $1, R3
	CBNZ    R3, line
	FADD2(2, 0, 0) // s[i] + s[i+4]
	FADD2(3, 1, 1)
	FADD2(6, 4, 4) // s[i+8] + s[i+12]
	FADD2(7, 5, 5)
	FADD2(4, 0, 0)
	FADD2(5, 1, 1)
	FADD2(1, 0, 0)
	FADDPAIR(0, 0)
	FMOVD.P F0, 8(R0)
	SUB     $1, R2
	CBNZ    R2, block
	RET
