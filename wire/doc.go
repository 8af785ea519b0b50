// Package wire encodes float32 values for the way between ranks and decodes
// them: half-precision floats, integers by block with stochastic rounding, the
// largest values only, and the arithmetic of low-rank factors. It knows bytes and
// numbers; sums, peers and buckets are others' business (packages collective and
// parallel).
//
//	f := wire.NewBlocks(8)
//	b := make([]byte, f.EncodedLen(len(x)))
//	f.Encode(b, x, seed)
//	f.DecodeAdd(sum, b)
//
// # What the caller must do
//
// Decode with a format of the same settings as the one that encoded, into as many
// values. Give each encoding its own seed: formats that round at random are pure
// functions of values and seed, so a run can be repeated to the bit.
//
// # What is lost
//
// EncodeKeeping leaves in its argument what the bytes lack, which the caller adds
// to what it sends next (error feedback: Seide et al. 2014, Karimireddy et al.
// 2019). A value that is not finite arrives as one, and keeps nothing.
//
// # What is left out
//
// Choosing a format, warming up, and keeping residuals: package parallel.
package wire
