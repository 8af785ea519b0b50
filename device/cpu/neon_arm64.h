// Vector instructions that Go's assembler has no name for, as words. Operands
// are numbers of registers V0 to V31, the destination last as everywhere in Go.

#define WORD3(op, m, n, d) WORD $((op)|((m)<<16)|((n)<<5)|(d))
#define WORD2(op, n, d) WORD $((op)|((n)<<5)|(d))

// Four float32: d = n op m.
#define FADD4(m, n, d) WORD3(0x4E20D400, m, n, d)
#define FSUB4(m, n, d) WORD3(0x4EA0D400, m, n, d)
#define FMUL4(m, n, d) WORD3(0x6E20DC00, m, n, d)
#define FDIV4(m, n, d) WORD3(0x6E20FC00, m, n, d)
#define FSQRT4(n, d) WORD2(0x6EA1F800, n, d)

// d += n * m, rounded once; in the second form m is element i of a vector.
#define FMLA4(m, n, d) WORD3(0x4E20CC00, m, n, d)
#define FMLA4BY(i, m, n, d) WORD3(0x4F801000|(((i)&1)<<21)|(((i)>>1)<<11), m, n, d)

// Comparisons set all bits of an element that passes; none passes with NaN.
#define FEQUAL4(m, n, d) WORD3(0x4E20E400, m, n, d)   // n == m
#define FABOVE4(m, n, d) WORD3(0x6EA0E400, m, n, d)   // n > m
#define FBELOWZERO4(n, d) WORD2(0x4EA0E800, n, d)     // n < 0
#define FNOTABOVEZERO4(n, d) WORD2(0x6EA0D800, n, d)  // n <= 0

// d = n and not m.
#define BITCLEAR(m, n, d) WORD3(0x4E601C00, m, n, d)

// Conversions of the lower and the upper half of a vector.
#define WIDENF16(n, d) WORD2(0x0E217800, n, d)      // FCVTL: 4 F16 to float32
#define WIDENF16HIGH(n, d) WORD2(0x4E217800, n, d)
#define NARROWF16(n, d) WORD2(0x0E216800, n, d)     // FCVTN: 4 float32 to F16
#define NARROWF16HIGH(n, d) WORD2(0x4E216800, n, d)
#define WIDENBF16(n, d) WORD2(0x2E613800, n, d)     // SHLL: 16 bits to the left
#define WIDENBF16HIGH(n, d) WORD2(0x6E613800, n, d)
#define WIDENF32(n, d) WORD2(0x0E617800, n, d)      // FCVTL: 2 float32 to float64
#define WIDENF32HIGH(n, d) WORD2(0x4E617800, n, d)

// Two float64.
#define FADD2(m, n, d) WORD3(0x4E60D400, m, n, d)
#define FMLA2(m, n, d) WORD3(0x4E60CC00, m, n, d)
#define FADDPAIR(n, d) WORD2(0x7E70D800, n, d)      // the sum of n's two
