#include "textflag.h"
#include "neon_arm64.h"

// Steps of optimizers over n elements, a multiple of 8 that may be 0. The order
// of the constants is that of cpu.sgdNumbers and cpu.adamNumbers, which
// cpu.TestNumberOffsets holds.

// DECAYED sets g = scale*g + decay*w, with the constants in V16 and V17.
#define DECAYED(w, g) \
	FMUL4(16, g, g); \
	FMUL4(17, w, 28); \
	FADD4(28, g, g)

// func sgdNEON(w, grad, numbers *float32, n int)
TEXT ·sgdNEON(SB), NOSPLIT, $0-32
	MOVD    w+0(FP), R0
	MOVD    grad+8(FP), R1
	MOVD    numbers+16(FP), R2
	MOVD    n+24(FP), R3
	VLD1R.P 4(R2), [V16.S4] // scale
	VLD1R.P 4(R2), [V17.S4] // decay
	VLD1R   (R2), [V18.S4]  // rate
	CBZ     R3, done

loop:
	VLD1   (R0), [V0.S4, V1.S4]
	VLD1.P 32(R1), [V2.S4, V3.S4]
	DECAYED(0, 2)
	DECAYED(1, 3)
	FMUL4(18, 2, 2)
	FMUL4(18, 3, 3)
	FSUB4(2, 0, 0)
	FSUB4(3, 1, 1)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUB    $8, R3
	CBNZ   R3, loop

done:
	RET

// func sgdMomentumNEON(w, grad, momentum, numbers *float32, n, nesterov int)
TEXT ·sgdMomentumNEON(SB), NOSPLIT, $0-48
	MOVD    w+0(FP), R0
	MOVD    grad+8(FP), R1
	MOVD    momentum+16(FP), R2
	MOVD    numbers+24(FP), R4
	MOVD    n+32(FP), R3
	MOVD    nesterov+40(FP), R5
	VLD1R.P 4(R4), [V16.S4] // scale
	VLD1R.P 4(R4), [V17.S4] // decay
	VLD1R.P 4(R4), [V18.S4] // rate
	VLD1R.P 4(R4), [V19.S4] // momentum
	VLD1R   (R4), [V20.S4]  // keep
	CBZ     R3, done

loop:
	VLD1   (R0), [V0.S4, V1.S4]
	VLD1.P 32(R1), [V2.S4, V3.S4]
	VLD1   (R2), [V4.S4, V5.S4]
	DECAYED(0, 2)
	DECAYED(1, 3)
	FMUL4(19, 4, 4)
	FMUL4(19, 5, 5)
	FMUL4(20, 2, 6)
	FMUL4(20, 3, 7)
	FADD4(6, 4, 4)
	FADD4(7, 5, 5)
	VST1.P [V4.S4, V5.S4], 32(R2)
	CBZ    R5, plain
	FMUL4(19, 4, 4)
	FMUL4(19, 5, 5)
	FADD4(4, 2, 4)
	FADD4(5, 3, 5)

plain:
	FMUL4(18, 4, 4)
	FMUL4(18, 5, 5)
	FSUB4(4, 0, 0)
	FSUB4(5, 1, 1)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUB    $8, R3
	CBNZ   R3, loop

done:
	RET

// func adamNEON(w, grad, m, v, numbers *float32, n int)
TEXT ·adamNEON(SB), NOSPLIT, $0-48
	MOVD    w+0(FP), R0
	MOVD    grad+8(FP), R1
	MOVD    m+16(FP), R2
	MOVD    v+24(FP), R4
	MOVD    numbers+32(FP), R5
	MOVD    n+40(FP), R3
	VLD1R.P 4(R5), [V16.S4] // scale
	VLD1R.P 4(R5), [V17.S4] // decay
	VLD1R.P 4(R5), [V18.S4] // shrink
	VLD1R.P 4(R5), [V19.S4] // beta1
	VLD1R.P 4(R5), [V20.S4] // rest1
	VLD1R.P 4(R5), [V21.S4] // beta2
	VLD1R.P 4(R5), [V22.S4] // rest2
	VLD1R.P 4(R5), [V23.S4] // root
	VLD1R.P 4(R5), [V24.S4] // epsilon
	VLD1R   (R5), [V25.S4]  // rate
	CBZ     R3, done

// ADAM updates w, m and v with the gradient g.
#define ADAM(w, g, m, v) \
	DECAYED(w, g); \
	FMUL4(19, m, m); \
	FMUL4(20, g, 28); \
	FADD4(28, m, m); \
	FMUL4(21, v, v); \
	FMUL4(22, g, 28); \
	FMUL4(g, 28, 28); \
	FADD4(28, v, v); \
	FSQRT4(v, 28); \
	FMUL4(23, 28, 28); \
	FADD4(24, 28, 28); \
	FDIV4(28, m, 28); \
	FMUL4(25, 28, 28); \
	FMUL4(18, w, w); \
	FSUB4(28, w, w)

loop:
	VLD1   (R0), [V0.S4, V1.S4]
	VLD1.P 32(R1), [V2.S4, V3.S4]
	VLD1   (R2), [V4.S4, V5.S4]
	VLD1   (R4), [V6.S4, V7.S4]
	ADAM(0, 2, 4, 6)
	ADAM(1, 3, 5, 7)
	VST1.P [V0.S4, V1.S4], 32(R0)
	VST1.P [V4.S4, V5.S4], 32(R2)
	VST1.P [V6.S4, V7.S4], 32(R4)
	SUB    $8, R3
	CBNZ   R3, loop

done:
	RET
