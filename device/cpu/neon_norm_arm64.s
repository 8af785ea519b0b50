#include "textflag.h"
#include "neon_arm64.h"

// A pixel is 16 channels, four vectors. cpu.TestNumberOffsets holds the
// positions in cpu.normNumbers: mean, factor, shift, offset, slope.

// EACH4 does op to the four vectors of m, n and d.
#define EACH4(op, m, n, d) \
	op(m, n, d); \
	op((m+1), (n+1), (d+1)); \
	op((m+2), (n+2), (d+2)); \
	op((m+3), (n+3), (d+3))

#define ZERO4(a, b, c, d) \
	VEOR a.B16, a.B16, a.B16; \
	VEOR b.B16, b.B16, b.B16; \
	VEOR c.B16, c.B16, c.B16; \
	VEOR d.B16, d.B16, d.B16

#define NOTABOVEZERO(m, n, d) FNOTABOVEZERO4(n, d)
#define BELOWZERO(m, n, d) FBELOWZERO4(n, d)

// func momentsNEON(out, x *float32, pixels int)
//
// Fills in a cpu.planeMoments.
TEXT ·momentsNEON(SB), NOSPLIT, $0-24
	MOVD   out+0(FP), R0
	MOVD   x+8(FP), R1
	MOVD   pixels+16(FP), R2
	SCVTFD R2, F28
	FCVTDS F28, F28
	VDUP   V28.S[0], V28.S4
	ZERO4(V16, V17, V18, V19) // the mean
	ZERO4(V20, V21, V22, V23) // sums of x-mean
	ZERO4(V24, V25, V26, V27) // and of its square
	CBZ    R2, store
	MOVD   R1, R3
	MOVD   R2, R4

sum:
	VLD1.P 64(R3), [V0.S4, V1.S4, V2.S4, V3.S4]
	EACH4(FADD4, 0, 16, 16)
	SUB    $1, R4
	CBNZ   R4, sum
	FDIV4(28, 16, 16)
	FDIV4(28, 17, 17)
	FDIV4(28, 18, 18)
	FDIV4(28, 19, 19)

about:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	EACH4(FSUB4, 16, 0, 0)
	EACH4(FADD4, 0, 20, 20)
	EACH4(FMLA4, 0, 0, 24)
	SUB    $1, R2
	CBNZ   R2, about

store:
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(R0)
	VST1.P [V20.S4, V21.S4, V22.S4, V23.S4], 64(R0)
	VST1   [V24.S4, V25.S4, V26.S4, V27.S4], (R0)
	RET

// func normForwardNEON(y, x, residual, numbers *float32, pixels, relu int)
//
// Residual may be nil.
TEXT ·normForwardNEON(SB), NOSPLIT, $0-48
	MOVD   y+0(FP), R0
	MOVD   x+8(FP), R1
	MOVD   residual+16(FP), R2
	MOVD   numbers+24(FP), R3
	MOVD   pixels+32(FP), R4
	MOVD   relu+40(FP), R5
	VLD1.P 64(R3), [V16.S4, V17.S4, V18.S4, V19.S4] // mean
	VLD1.P 64(R3), [V20.S4, V21.S4, V22.S4, V23.S4] // factor
	VLD1   (R3), [V24.S4, V25.S4, V26.S4, V27.S4]   // shift
	CBZ    R4, done

loop:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	EACH4(FSUB4, 16, 0, 0)
	EACH4(FMUL4, 20, 0, 0)
	EACH4(FADD4, 24, 0, 0)
	CBZ    R2, alone
	VLD1.P 64(R2), [V4.S4, V5.S4, V6.S4, V7.S4]
	EACH4(FADD4, 4, 0, 0)

alone:
	CBZ R5, linear
	EACH4(BELOWZERO, 0, 0, 4)
	EACH4(BITCLEAR, 4, 0, 0)

linear:
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	SUB    $1, R4
	CBNZ   R4, loop

done:
	RET

// func normBackwardSumsNEON(out, dy, x, y, numbers *float32, pixels int)
//
// Fills in a cpu.planeSums; y may be nil.
TEXT ·normBackwardSumsNEON(SB), NOSPLIT, $0-48
	MOVD out+0(FP), R0
	MOVD dy+8(FP), R1
	MOVD x+16(FP), R2
	MOVD y+24(FP), R3
	MOVD numbers+32(FP), R4
	MOVD pixels+40(FP), R5
	VLD1 (R4), [V16.S4, V17.S4, V18.S4, V19.S4] // mean
	ZERO4(V20, V21, V22, V23)
	ZERO4(V24, V25, V26, V27)
	CBZ  R5, store

loop:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R2), [V4.S4, V5.S4, V6.S4, V7.S4]
	CBZ    R3, passed
	VLD1.P 64(R3), [V28.S4, V29.S4, V30.S4, V31.S4]
	EACH4(NOTABOVEZERO, 28, 28, 28)
	EACH4(BITCLEAR, 28, 0, 0)

passed:
	EACH4(FSUB4, 16, 4, 4)
	EACH4(FADD4, 0, 20, 20)
	EACH4(FMLA4, 0, 4, 24)
	SUB  $1, R5
	CBNZ R5, loop

store:
	VST1.P [V20.S4, V21.S4, V22.S4, V23.S4], 64(R0)
	VST1   [V24.S4, V25.S4, V26.S4, V27.S4], (R0)
	RET

// func normBackwardOutputsNEON(dx, dresidual, dy, x, y, numbers *float32, pixels, accumulate int)
//
// Y and dresidual may be nil.
TEXT ·normBackwardOutputsNEON(SB), NOSPLIT, $0-64
	MOVD   dx+0(FP), R0
	MOVD   dresidual+8(FP), R1
	MOVD   dy+16(FP), R2
	MOVD   x+24(FP), R3
	MOVD   y+32(FP), R4
	MOVD   numbers+40(FP), R5
	MOVD   pixels+48(FP), R6
	MOVD   accumulate+56(FP), R7
	VLD1.P 64(R5), [V16.S4, V17.S4, V18.S4, V19.S4] // mean
	VLD1.P 64(R5), [V20.S4, V21.S4, V22.S4, V23.S4] // factor
	ADD    $64, R5                                  // without the shift
	VLD1.P 64(R5), [V24.S4, V25.S4, V26.S4, V27.S4] // offset
	VLD1   (R5), [V28.S4, V29.S4, V30.S4, V31.S4]   // slope
	CBZ    R6, done

loop:
	VLD1.P 64(R2), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R3), [V4.S4, V5.S4, V6.S4, V7.S4]
	CBZ    R4, passed
	VLD1.P 64(R4), [V8.S4, V9.S4, V10.S4, V11.S4]
	EACH4(NOTABOVEZERO, 8, 8, 8)
	EACH4(BITCLEAR, 8, 0, 0)

passed:
	CBZ    R1, unshared
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R1)

unshared:
	EACH4(FSUB4, 16, 4, 4)
	EACH4(FMUL4, 28, 4, 4)
	EACH4(FSUB4, 24, 0, 0)
	EACH4(FSUB4, 4, 0, 0)
	EACH4(FMUL4, 20, 0, 0)
	CBZ  R7, fresh
	VLD1 (R0), [V8.S4, V9.S4, V10.S4, V11.S4]
	EACH4(FADD4, 8, 0, 0)

fresh:
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	SUB    $1, R6
	CBNZ   R6, loop

done:
	RET
