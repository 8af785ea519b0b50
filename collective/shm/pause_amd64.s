//go:build linux

#include "textflag.h"

// func pause(n uint32)
TEXT ·pause(SB), NOSPLIT, $0-4
	MOVL n+0(FP), CX
loop:
	PAUSE
	SUBL $1, CX
	JNZ  loop
	RET

// func preload(b unsafe.Pointer, n int)
TEXT ·preload(SB), NOSPLIT, $0-16
	MOVQ b+0(FP), AX
	MOVQ n+8(FP), CX
line:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	SUBQ $64, CX
	JGT  line
	RET

// func claim(b unsafe.Pointer, n int)
TEXT ·claim(SB), NOSPLIT, $0-16
	MOVQ b+0(FP), AX
	MOVQ n+8(FP), CX
line:
	BYTE $0x0f; BYTE $0x0d; BYTE $0x08 // PREFETCHW (AX)
	ADDQ $64, AX
	SUBQ $64, CX
	JGT  line
	RET
