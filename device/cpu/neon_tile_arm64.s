#include "textflag.h"
#include "neon_arm64.h"

// The sums of row i are V(4i) to V(4i+3); V20 to V23 hold a line of B, and
// V24 to V28 floats of A, one register a row: five rows fill the registers.

// LINE loads a line of B.
#define LINE(offset) \
	FLDPQ (offset)(R6), (F20, F21); \
	FLDPQ (offset+32)(R6), (F22, F23)

// ROW adds element k of a, times the line of B, to the four sums from s on.
#define ROW(k, a, s) \
	FMLA4BY(k, a, 20, s); \
	FMLA4BY(k, a, 21, (s+1)); \
	FMLA4BY(k, a, 22, (s+2)); \
	FMLA4BY(k, a, 23, (s+3))

#define ROWS1(k) ROW(k, 24, 0)
#define ROWS2(k) ROWS1(k); ROW(k, 25, 4)
#define ROWS3(k) ROWS2(k); ROW(k, 26, 8)
#define ROWS4(k) ROWS3(k); ROW(k, 27, 12)
#define ROWS5(k) ROWS4(k); ROW(k, 28, 16)

// AT sets the pointers of a block's rows; FLOATS loads four floats of each.
#define AT1 ADD R8, R1, R12
#define AT2 AT1; ADD R8, R2, R13
#define AT3 AT2; ADD R8, R3, R14
#define AT4 AT3; ADD R8, R4, R15
#define AT5 AT4; ADD R8, R5, R16

#define FLOATS1(offset) FMOVQ offset(R12), F24
#define FLOATS2(offset) FLOATS1(offset); FMOVQ offset(R13), F25
#define FLOATS3(offset) FLOATS2(offset); FMOVQ offset(R14), F26
#define FLOATS4(offset) FLOATS3(offset); FMOVQ offset(R15), F27
#define FLOATS5(offset) FLOATS4(offset); FMOVQ offset(R16), F28

// SINGLE loads one float of each row.
#define SINGLE1 FMOVS (R1)(R8), F24
#define SINGLE2 SINGLE1; FMOVS (R2)(R8), F25
#define SINGLE3 SINGLE2; FMOVS (R3)(R8), F26
#define SINGLE4 SINGLE3; FMOVS (R4)(R8), F27
#define SINGLE5 SINGLE4; FMOVS (R5)(R8), F28

// QUAD takes four steps along the rows.
#define QUAD(floats, rows, offset) \
	floats(offset); \
	LINE(4*offset*4); rows(0); \
	LINE(4*offset*4+64); rows(1); \
	LINE(4*offset*4+128); rows(2); \
	LINE(4*offset*4+192); rows(3)

// STEPS takes all steps of a group: blocks of 16 floats, then single ones.
#define STEPS(blocks, block, singles, single, at, floats, one, rows) \
	CBZ R9, singles; \
block: \
	MOVD.P 8(R7), R8; \
	at; \
	QUAD(floats, rows, 0); \
	QUAD(floats, rows, 16); \
	QUAD(floats, rows, 32); \
	QUAD(floats, rows, 48); \
	ADD $1024, R6; \
	SUB $1, R9; \
	CBNZ R9, block; \
singles: \
	CBZ R17, finish; \
single: \
	MOVD.P 8(R7), R8; \
	one; \
	LINE(0); \
	ADD $64, R6; \
	rows(0); \
	SUB $1, R17; \
	CBNZ R17, single; \
	B finish

// POINTERS sets R1 to R5 to base plus the rows' offsets of A (0) or C (8). The
// rows that a group of R23 has not are those of its first.
#define POINTERS(offset, base, enough) \
	MOVD offset(R10), R1; \
	ADD base, R1; \
	MOVD R1, R2; \
	MOVD R1, R3; \
	MOVD R1, R4; \
	MOVD R1, R5; \
	CMP $2, R23; \
	BLT enough; \
	MOVD (16+offset)(R10), R2; \
	ADD base, R2; \
	CMP $3, R23; \
	BLT enough; \
	MOVD (32+offset)(R10), R3; \
	ADD base, R3; \
	CMP $4, R23; \
	BLT enough; \
	MOVD (48+offset)(R10), R4; \
	ADD base, R4; \
	CMP $5, R23; \
	BLT enough; \
	MOVD (64+offset)(R10), R5; \
	ADD base, R5; \
enough:

#define CLEAR4(a, b, c, d) \
	VEOR a.B16, a.B16, a.B16; \
	VEOR b.B16, b.B16, b.B16; \
	VEOR c.B16, c.B16, c.B16; \
	VEOR d.B16, d.B16, d.B16

// FROMC adds the row of C at p to the sums from s on.
#define FROMC(p, s) \
	FLDPQ (p), (F20, F21); \
	FLDPQ 32(p), (F22, F23); \
	LINETO(s)

// LINETO adds V20 to V23 to the sums from s on.
#define LINETO(s) \
	FADD4(20, s, s); \
	FADD4(21, (s+1), (s+1)); \
	FADD4(22, (s+2), (s+2)); \
	FADD4(23, (s+3), (s+3))

// CLAMP zeroes what is below zero: neither NaN nor -0.
#define CLAMP(s) \
	FBELOWZERO4(s, 24); \
	FBELOWZERO4((s+1), 25); \
	FBELOWZERO4((s+2), 26); \
	FBELOWZERO4((s+3), 27); \
	BITCLEAR(24, s, s); \
	BITCLEAR(25, (s+1), (s+1)); \
	BITCLEAR(26, (s+2), (s+2)); \
	BITCLEAR(27, (s+3), (s+3))

#define MASKED(a, b, c, d) \
	VAND V20.B16, a.B16, a.B16; \
	VAND V21.B16, b.B16, b.B16; \
	VAND V22.B16, c.B16, c.B16; \
	VAND V23.B16, d.B16, d.B16

// func tileNEON(t *tile)
//
// Computes the tile at t, whose groups are not 0 and have at most five rows, and
// whose flags are without flagMask. cpu.TestTileOffsets holds the offsets.
TEXT ·tileNEON(SB), NOSPLIT, $0-8
	MOVD t+0(FP), R0
	MOVD 0(R0), R19  // a
	MOVD 16(R0), R20 // c
	MOVD 24(R0), R10 // rows
	MOVD 80(R0), R11 // groups
	MOVD 96(R0), R21 // flags

next:
	// The last groups have one row less.
	MOVD 72(R0), R23
	MOVD 88(R0), R9
	CMP  R9, R11
	BGT  sized
	SUB  $1, R23

sized:
	POINTERS(0, R19, sourced)
	MOVD 8(R0), R6   // b
	MOVD 32(R0), R7  // steps
	MOVD 56(R0), R9  // blocks
	MOVD 64(R0), R17 // singles
	CLEAR4(V0, V1, V2, V3)
	CLEAR4(V4, V5, V6, V7)
	CLEAR4(V8, V9, V10, V11)
	CLEAR4(V12, V13, V14, V15)
	CLEAR4(V16, V17, V18, V19)
	CMP $4, R23
	BGT five
	BEQ four
	CMP $2, R23
	BGT three
	BEQ two
	STEPS(blocks1, block1, singles1, single1, AT1, FLOATS1, SINGLE1, ROWS1)

two:
	STEPS(blocks2, block2, singles2, single2, AT2, FLOATS2, SINGLE2, ROWS2)

three:
	STEPS(blocks3, block3, singles3, single3, AT3, FLOATS3, SINGLE3, ROWS3)

four:
	STEPS(blocks4, block4, singles4, single4, AT4, FLOATS4, SINGLE4, ROWS4)

five:
	STEPS(blocks5, block5, singles5, single5, AT5, FLOATS5, SINGLE5, ROWS5)

finish:
	POINTERS(8, R20, targeted)
	TBZ $0, R21, fresh
	FROMC(R1, 0)
	FROMC(R2, 4)
	FROMC(R3, 8)
	FROMC(R4, 12)
	FROMC(R5, 16)

fresh:
	MOVD 40(R0), R22 // bias
	CBZ  R22, unbiased
	FLDPQ (R22), (F20, F21)
	FLDPQ 32(R22), (F22, F23)
	LINETO(0)
	LINETO(4)
	LINETO(8)
	LINETO(12)
	LINETO(16)

unbiased:
	TBZ $1, R21, linear
	CLAMP(0)
	CLAMP(4)
	CLAMP(8)
	CLAMP(12)
	CLAMP(16)

linear:
	TBZ  $3, R21, store
	MOVD 48(R0), R22 // mask
	FLDPQ (R22), (F20, F21)
	FLDPQ 32(R22), (F22, F23)
	MASKED(V0, V1, V2, V3)
	MASKED(V4, V5, V6, V7)
	MASKED(V8, V9, V10, V11)
	MASKED(V12, V13, V14, V15)
	MASKED(V16, V17, V18, V19)

store:
	CMP $4, R23
	BGT store5
	BEQ store4
	CMP $2, R23
	BGT store3
	BEQ store2
	B   store1

store5:
	FSTPQ (F16, F17), (R5)
	FSTPQ (F18, F19), 32(R5)

store4:
	FSTPQ (F12, F13), (R4)
	FSTPQ (F14, F15), 32(R4)

store3:
	FSTPQ (F8, F9), (R3)
	FSTPQ (F10, F11), 32(R3)

store2:
	FSTPQ (F4, F5), (R2)
	FSTPQ (F6, F7), 32(R2)

store1:
	FSTPQ (F0, F1), (R1)
	FSTPQ (F2, F3), 32(R1)
	ADD   R23<<4, R10
	SUB   $1, R11
	CBNZ  R11, next
	RET

// TRANSPOSE4 takes four rows of four floats from V0 to V3 to four columns in V16 to V19.
#define TRANSPOSE4 \
	VTRN1 V1.S4, V0.S4, V4.S4; \
	VTRN2 V1.S4, V0.S4, V5.S4; \
	VTRN1 V3.S4, V2.S4, V6.S4; \
	VTRN2 V3.S4, V2.S4, V7.S4; \
	VTRN1 V6.D2, V4.D2, V16.D2; \
	VTRN1 V7.D2, V5.D2, V17.D2; \
	VTRN2 V6.D2, V4.D2, V18.D2; \
	VTRN2 V7.D2, V5.D2, V19.D2

// func transposeNEON(dst, src *float32, stride, n int)
//
// Sets dst[k*16+i] = src[i*stride+k] for 16 rows and n columns, a multiple of 4
// and not 0.
TEXT ·transposeNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD stride+16(FP), R2
	MOVD n+24(FP), R3
	LSL  $2, R2
	MOVD $4, R4 // fours of rows

rows:
	MOVD R1, R5
	ADD  R2, R5, R6
	ADD  R2, R6, R7
	ADD  R2, R7, R8
	ADD  R2, R8, R1
	MOVD R0, R9
	MOVD R3, R10

columns:
	FMOVQ.P 16(R5), F0
	FMOVQ.P 16(R6), F1
	FMOVQ.P 16(R7), F2
	FMOVQ.P 16(R8), F3
	TRANSPOSE4
	FMOVQ F16, (R9)
	FMOVQ F17, 64(R9)
	FMOVQ F18, 128(R9)
	FMOVQ F19, 192(R9)
	ADD   $256, R9
	SUB   $4, R10
	CBNZ  R10, columns
	ADD   $16, R0
	SUB   $1, R4
	CBNZ  R4, rows
	RET
