// Package cpu computes on the host's processor: vector assembly for AVX-512, for
// AVX2 with FMA and for NEON, with Intel's matrix unit AMX beside AVX-512 where
// there is one, portable Go loops elsewhere.
//
// # How it is built
//
// One gathering matrix product does all the heavy work (tile.go):
//
//	C[i][0..16) = sum over k of A[row(i) + step(k)] * B[k][0..16)
//
// where row and step are tables of byte offsets. A matrix product uses the
// tables of a row-major matrix; a convolution makes row(i) an output pixel and
// step(k) a filter tap of a zero-padded image, so that nothing is unfolded; the
// gradient of the weights makes row(i) a tap and step(k) a pixel. B is packed
// into panels 16 columns wide, which is one line of nChw16c; a tile may cover
// several panels that share A. Of a product, the side is packed that takes less
// work, and the other is read where it lies (matmul.go). Around the tile
// stand vector loops that pass over memory once (vector.go) and functions of rows
// (functions.go). All are entries of a kernelSet: a new instruction set fills in
// that struct and nothing else.
//
// Convolutions in groups run group by group on copies of their channels, but for
// those of one channel each, which have a tile whose columns do not mix
// (conv_groups.go). Attention computes a block of queries of one head at a time
// and keeps no more of the scores; the backward pass makes them again
// (attention.go).
//
// A 3 x 3 convolution of stride 1 may go another way (winograd_form.go): tiles of
// 4 x 4 or 2 x 2 outputs are brought to 36 or 16 positions, where the
// convolution is a product of matrices with a quarter or less than half of the
// multiplications, and back. The backward passes are the exact adjoints of the
// forward one. Config.Conv chooses; "auto" goes by what the shape costs either
// way (conv_choice.go). Rounding errors stay near those of the direct sum with
// 2 x 2 and are two to four times as large with 4 x 4; a NaN or an infinity
// reaches all outputs of the tiles that it lies in, not only those that depend
// on it. The direct method passes them on as IEEE 754 says. A block of tiles stays
// in the second-level cache from transform to transform where the transformed
// weights do too (winograd_product.go), a chunk of the weights does where the tiles
// are few (winograd_wide.go), and one position of all tiles does on a matrix unit
// elsewhere (winograd_positions.go, winograd_sums.go).
//
// The kernels called amx compute matrix products and convolutions on the matrix
// unit, where the shape makes that faster: each float32 is cut into three parts of bfloat16, of whose
// products all are summed in float32 that are more than a rounding (parts.go).
// Their errors are not larger than those of a chain of float32 sums: what
// TestWinogradErrors logs is 5e-7 where vectors have 8e-7. Where a result is not
// finite it is computed by vectors again, so that infinities and NaN pass as IEEE
// 754 says; what is below 2^-110 counts as few bits or as nothing.
//
// # What callers may rely on
//
// Results are a pure function of inputs and shapes for one kernel set: threads
// split outputs, never sums. Element-wise kernels and optimizer steps give the
// same bits in every kernel set, because they do not fuse multiply and add;
// exponentials, tanh, GELU and the like only within a set, where an element has
// the same bits wherever it stands. Their errors: exp 1e-7, tanh and sigmoid
// 3e-7 of the value; GELU 7e-7, of which its share of x has 1.2e-7; the
// derivatives 2e-7. Infinities give the limits, NaN gives NaN.
// A call returns when it is done, and allocates nothing once the device has
// seen its shape. Kernels may be called from several goroutines; they share the
// device's threads.
//
// The generator of the assembly is the nested module gen; its output is
// committed. The package leaves out weights that stay packed from one call to the
// next, and threads bound to cores.
package cpu
