//go:build linux

#include "textflag.h"

// func pause(n uint32)
TEXT ·pause(SB), NOSPLIT, $0-4
	MOVWU n+0(FP), R0
loop:
	YIELD
	SUBW $1, R0
	CBNZ R0, loop
	RET

// func preload(b unsafe.Pointer, n int)
TEXT ·preload(SB), NOSPLIT, $0-16
	MOVD b+0(FP), R0
	MOVD n+8(FP), R1
line:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUBS $64, R1
	BGT  line
	RET

// func claim(b unsafe.Pointer, n int)
TEXT ·claim(SB), NOSPLIT, $0-16
	MOVD b+0(FP), R0
	MOVD n+8(FP), R1
line:
	PRFM (R0), PSTL1KEEP
	ADD  $64, R0
	SUBS $64, R1
	BGT  line
	RET
