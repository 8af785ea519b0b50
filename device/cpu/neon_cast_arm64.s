#include "textflag.h"
#include "neon_arm64.h"

// Conversions of eight elements at a time; n is a multiple of 8 and may be 0.

// WIDEN sets dst, or with ADDED adds to it, eight numbers of 16 bits in V0.
#define WIDEN(low, high, added) \
	MOVD dst+0(FP), R0; \
	MOVD src+8(FP), R1; \
	MOVD n+16(FP), R2; \
	CBZ R2, done; \
loop: \
	FMOVQ.P 16(R1), F0; \
	low(0, 1); \
	high(0, 2); \
	added; \
	VST1.P [V1.S4, V2.S4], 32(R0); \
	SUB $8, R2; \
	CBNZ R2, loop; \
done: \
	RET

#define ADDED \
	VLD1 (R0), [V3.S4, V4.S4]; \
	FADD4(1, 3, 1); \
	FADD4(2, 4, 2)

#define ALONE

// func widenF16NEON(dst *float32, src *uint16, n int)
TEXT ·widenF16NEON(SB), NOSPLIT, $0-24
	WIDEN(WIDENF16, WIDENF16HIGH, ALONE)

// func addF16NEON(dst *float32, src *uint16, n int)
TEXT ·addF16NEON(SB), NOSPLIT, $0-24
	WIDEN(WIDENF16, WIDENF16HIGH, ADDED)

// func widenBF16NEON(dst *float32, src *uint16, n int)
TEXT ·widenBF16NEON(SB), NOSPLIT, $0-24
	WIDEN(WIDENBF16, WIDENBF16HIGH, ALONE)

// func addBF16NEON(dst *float32, src *uint16, n int)
TEXT ·addBF16NEON(SB), NOSPLIT, $0-24
	WIDEN(WIDENBF16, WIDENBF16HIGH, ADDED)

// func narrowF16NEON(dst *uint16, src *float32, n int)
TEXT ·narrowF16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2
	CBZ  R2, done

loop:
	VLD1.P  32(R1), [V0.S4, V1.S4]
	NARROWF16(0, 2)
	NARROWF16HIGH(1, 2)
	FMOVQ.P F2, 16(R0)
	SUB     $8, R2
	CBNZ    R2, loop

done:
	RET

// ROUND leaves the rounded bits of v in its upper halves: half of the last
// place is added, less one bit where that place is even. NaN becomes quiet.
// V16 is 1, V17 0x7fff, V18 the quiet bit of a NaN.
#define ROUND(number, v) \
	FEQUAL4(number, number, 4); \
	VORR v.B16, V18.B16, V5.B16; \
	VUSHR $16, v.S4, V6.S4; \
	VAND V16.B16, V6.B16, V6.B16; \
	VADD V17.S4, V6.S4, V6.S4; \
	VADD V6.S4, v.S4, v.S4; \
	VBIF V4.B16, V5.B16, v.B16

// func narrowBF16NEON(dst *uint16, src *float32, n int)
TEXT ·narrowBF16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2
	CBZ  R2, done
	MOVD $1, R3
	VDUP R3, V16.S4
	MOVD $0x7fff, R3
	VDUP R3, V17.S4
	MOVD $0x400000, R3
	VDUP R3, V18.S4

loop:
	VLD1.P  32(R1), [V0.S4, V1.S4]
	ROUND(0, V0)
	ROUND(1, V1)
	VUZP2   V1.H8, V0.H8, V2.H8
	FMOVQ.P F2, 16(R0)
	SUB     $8, R2
	CBNZ    R2, loop

done:
	RET
