// Package pack shortens floats without loss for links that are slower than the
// packing. The exponents of gradients and parameters that stand side by side are
// few: of the 8 bits that an exponent has in float32 and bfloat16 about 2.7 are
// information, and those are what is sent, beside sign and mantissa as they are. An
// f32 of a gradient takes about 27 bits of 32, an f16 14 of 16, a bf16 11 of 16.
// What comes out has the bits that went in, NaN, infinities, -0 and denormals too.
//
//	b := make([]byte, pack.Bound(pack.F32, n))
//	b = b[:pack.Encode(b, values, pack.F32)]
//	err := pack.Decode(again, b, pack.F32)
//
// # The format
//
// Values go in blocks of 256, the last one shorter. Each value is turned left by one
// bit, so that the exponent stands at the top and the sign at the bottom. A block
// begins with a byte: 0, its values follow as they are; 1, all are +0 and nothing
// follows; 2 + w, a coded block:
//
//	largest exponent                1 byte
//	sign and mantissa               3 bytes a value of f32, of 16-bit floats the lower byte
//	for each group of 64 values     f16 only: 3 bits a value, the top of the mantissa
//	                                2 bits a value, the code
//	for each group of 64 escapes    3 bits each, then a byte for each that says 7
//
// With c the exponent's distance below the largest, the code is c - w where that is
// 0, 1 or 2: the three exponents in a row that most values have. The others have the
// code 3, and an escape of c, or of c - 3 above w: less than 7 in bits, otherwise 7 in
// bits and the escape as a byte. Bits are stored plane by plane: the lowest bit of all
// values of a group, rounded up to bytes, then the next. w is the first of 0 to 5 that
// leaves the fewest escapes, so that every implementation gives the same bytes.
//
// # What the caller must do
//
// Send what Encode has not shortened as it is. Know the number and type of the
// values, which the bytes do not tell.
//
// # What is left out
//
// Finding out whether packing pays: package collective. Codes of a length of their
// own, by frequency, would save another 1 % of f32 and cost several times as much.
package pack
