package device

import (
	"fmt"
	"math"
)

// LayerNorm describes normalisation of each row of a Rows x Cols matrix over
// its columns (Ba, Kiros and Hinton, 2016).
type LayerNorm struct {
	Rows, Cols int
	Epsilon    float32
	Accumulate bool // dx is added to
}

// Len returns the elements of x, y, dx and dy.
func (d LayerNorm) Len() int { return d.Rows * d.Cols }

// Check panics with a *ShapeError when no such normalisation exists.
func (d LayerNorm) Check(kernel string) {
	RequireThat(d.Rows >= 0 && d.Cols > 0, kernel, "descriptor", "needs columns above 0")
}

// RequireForward panics with a *ShapeError unless the arguments of
// LayerNormForward fit d.
func (d LayerNorm) RequireForward(y, mean, invstd, x, scale, shift Buf) {
	const kernel = "LayerNormForward"
	d.Check(kernel)
	RequireFloat(kernel, "y", y, d.Len())
	Require(kernel, "shift", shift, F32, d.Cols)
	d.require(kernel, mean, invstd, x, scale)
}

// RequireBackward is RequireForward for LayerNormBackward; dx may be the zero Buf.
func (d LayerNorm) RequireBackward(dx, dscale, dshift, dy, x, mean, invstd, scale Buf) {
	const kernel = "LayerNormBackward"
	d.Check(kernel)
	Require(kernel, "dscale", dscale, F32, d.Cols)
	Require(kernel, "dshift", dshift, F32, d.Cols)
	RequireFloat(kernel, "dy", dy, d.Len())
	if !dx.IsZero() {
		RequireFloat(kernel, "dx", dx, d.Len())
	}
	d.require(kernel, mean, invstd, x, scale)
}

func (d LayerNorm) require(kernel string, mean, invstd, x, scale Buf) {
	Require(kernel, "mean", mean, F32, d.Rows)
	Require(kernel, "invstd", invstd, F32, d.Rows)
	RequireFloat(kernel, "x", x, d.Len())
	Require(kernel, "scale", scale, F32, d.Cols)
}

// Embedding describes a table of Count vectors of Width elements, of which
// Rows are looked up.
type Embedding struct {
	Rows, Count, Width int
	Accumulate         bool // dtable is added to
}

// Check panics with a *ShapeError when no such table exists.
func (d Embedding) Check(kernel string) {
	RequireThat(d.Rows >= 0 && d.Count > 0 && d.Width > 0, kernel, "descriptor", "needs a table above 0 x 0")
}

// RequireForward panics with a *ShapeError or an *IndexError unless the arguments
// of EmbeddingForward fit d.
func (d Embedding) RequireForward(y, table, ids Buf) {
	d.require("EmbeddingForward", "y", y, "table", table, ids)
}

// RequireBackward is RequireForward for EmbeddingBackward.
func (d Embedding) RequireBackward(dtable, dy, ids Buf) {
	const kernel = "EmbeddingBackward"
	d.require(kernel, "dy", dy, "dtable", dtable, ids)
	Require(kernel, "dtable", dtable, F32, d.Count*d.Width)
}

func (d Embedding) require(kernel, rowsName string, rows Buf, tableName string, table, ids Buf) {
	d.Check(kernel)
	RequireFloat(kernel, rowsName, rows, d.Rows*d.Width)
	RequireFloat(kernel, tableName, table, d.Count*d.Width)
	Require(kernel, "ids", ids, I32, d.Rows)
	d.checkIndices(ids.I32())
}

// checkIndices panics with an *IndexError when one of ids names no vector of d.
func (d Embedding) checkIndices(ids []int32) {
	for i, id := range ids[:d.Rows] {
		if id < 0 || int(id) >= d.Count {
			panic(&IndexError{Row: i, Index: id, Count: d.Count})
		}
	}
}

// IndexError is the value that an embedding kernel panics with when an index
// names no vector. The indices came from data, so whoever catches it should say
// which.
type IndexError struct {
	Row   int
	Index int32
	Count int
}

func (e *IndexError) Error() string {
	return fmt.Sprintf("device: row %d has index %d, outside of 0..%d", e.Row, e.Index, e.Count-1)
}

// Attention describes scaled dot-product attention (Vaswani et al., 2017) of
// Batch sequences of Length tokens, with Heads heads of Width elements.
//
// A row of qkv is a token: first the queries of all heads, then the keys, then
// the values, Heads * Width elements each. A row of y holds the results of all
// heads. Rows follow each other sequence by sequence.
type Attention struct {
	Batch, Length, Heads, Width int
	// Causal lets a token see itself and those before it only.
	Causal bool
	// Scale multiplies the products of queries and keys; 0 is 1/sqrt(Width).
	Scale      float32
	Accumulate bool // dqkv is added to
}

// YLen returns the elements of y and dy; qkv and dqkv have three times as many.
func (d Attention) YLen() int { return d.Batch * d.Length * d.Heads * d.Width }

// LogLen returns the elements of logsum.
func (d Attention) LogLen() int { return d.Batch * d.Heads * d.Length }

// Factor returns Scale, or what it stands for when it is 0.
func (d Attention) Factor() float32 {
	if d.Scale == 0 {
		return float32(1 / math.Sqrt(float64(d.Width)))
	}
	return d.Scale
}

// Check panics with a *ShapeError when no such attention exists.
func (d Attention) Check(kernel string) {
	RequireThat(d.Batch >= 0 && d.Length >= 0 && d.Heads > 0 && d.Width > 0, kernel, "descriptor", "needs heads and a width above 0")
	RequireThat(d.Scale >= 0, kernel, "scale", "is negative")
}

// RequireForward panics with a *ShapeError unless the arguments of
// AttentionForward fit d.
func (d Attention) RequireForward(y, logsum, qkv Buf) {
	d.require("AttentionForward", "y", y, "qkv", qkv, logsum)
}

// RequireBackward is RequireForward for AttentionBackward.
func (d Attention) RequireBackward(dqkv, dy, qkv, y, logsum Buf) {
	const kernel = "AttentionBackward"
	d.require(kernel, "y", y, "qkv", qkv, logsum)
	d.require(kernel, "dy", dy, "dqkv", dqkv, logsum)
}

func (d Attention) require(kernel, yName string, y Buf, qkvName string, qkv, logsum Buf) {
	d.Check(kernel)
	RequireFloat(kernel, qkvName, qkv, 3*d.YLen())
	RequireFloat(kernel, yName, y, d.YLen())
	Require(kernel, "logsum", logsum, F32, d.LogLen())
}

// SequenceKernels are what networks over sequences of tokens need beside
// matrix products.
type SequenceKernels interface {
	// LayerNormForward sets y = scale[j] * (x - mean) * invstd + shift[j] in each
	// row, with the row's own mean and 1/sqrt(biased variance + Epsilon), which
	// it stores (Rows elements each), without cancellation for |mean| >>
	// deviation. scale and shift have Cols elements. y may be x.
	LayerNormForward(d LayerNorm, y, mean, invstd, x, scale, shift Buf)
	// LayerNormBackward sets dscale and dshift (Cols elements each, always
	// overwritten) and dx. dx may be dy, or the zero Buf when it is not wanted.
	LayerNormBackward(d LayerNorm, dx, dscale, dshift, dy, x, mean, invstd, scale Buf)

	// EmbeddingForward copies vector ids[i] (I32) of table into row i of y.
	EmbeddingForward(d Embedding, y, table, ids Buf)
	// EmbeddingBackward sets the rows of dtable to the sums of the rows of dy
	// that looked them up, in the order of rows; other rows become zero (or stay,
	// with Accumulate).
	EmbeddingBackward(d Embedding, dtable, dy, ids Buf)

	// AttentionForward sets y = softmax(q k^T Scale) v for each head, and logsum
	// [Batch][Heads][Length] to the logarithm of each row's sum of exponentials.
	// No more than some rows of one head's matrix are in memory at a time
	// (Dao et al., 2022).
	AttentionForward(d Attention, y, logsum, qkv Buf)
	// AttentionBackward sets dqkv from what the forward pass read and wrote.
	AttentionBackward(d Attention, dqkv, dy, qkv, y, logsum Buf)
}
