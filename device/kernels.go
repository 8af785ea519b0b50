package device

// Kernels is the arithmetic of a device. All tensors are float32 unless a
// comment says otherwise. Shapes come in descriptors; buffers must be at least
// as long as the descriptor says, outputs may not overlap inputs unless a
// comment allows it, and a mismatch panics (a programmer's error, which package
// nn turns into an error that names the layer).
//
// Activations and their gradients (x, y, dx, dy, residual, qkv, logits and so
// on) and the weights and tables that a kernel reads may each be F16 or BF16,
// mixed as the caller likes: they are widened when read, computed with in
// float32, and rounded once where they are stored. Where an output may be an
// input, their types are equal. Statistics, gradients of parameters, probs,
// biases and scales are float32. Widened adds this to kernels that lack it.
//
// Accumulate in a descriptor means that the result is added to what the output
// holds; otherwise the output is overwritten and need not be initialised.
type Kernels interface {
	Elementwise
	MatrixKernels
	ImageKernels
	SequenceKernels
	LossKernels
	UpdateKernels
}

// Elementwise kernels and folds. An element gets the same bits wherever it
// stands in a buffer.
type Elementwise interface {
	// Fill sets every element of dst (F32).
	Fill(dst Buf, v float32)
	// Copy copies src to dst; types and lengths are equal.
	Copy(dst, src Buf)
	// Cast converts between F32, F16, BF16 and F64, rounding to nearest even.
	Cast(dst, src Buf)
	// Add sets dst = a + b. dst may be a or b.
	Add(dst, a, b Buf)
	// Scale sets dst = s * a. dst may be a.
	Scale(dst, a Buf, s float32)
	// Reduce sets dst = dst op src, for every Type; F16 and BF16 are computed
	// in float32 and rounded once.
	Reduce(op ReduceOp, dst, src Buf)
	// Fold sets dst to the sum of parts, added from left to right in float32
	// (float64 for F64, exact for integers) and rounded once. dst may be
	// parts[0]. This is the direct all-reduce of one rank's slice.
	Fold(dst Buf, parts []Buf)
	// Activate sets y = f(x). y may be x.
	Activate(f Activation, y, x Buf)
	// ActivateBackward sets dx = dy * f'(x), computed from saved: x where
	// f.SavesInput(), else y = f(x). dx may be dy.
	ActivateBackward(f Activation, dx, dy, saved Buf, accumulate bool)
	// Dropout sets y = x * mask / (1-p), where the mask bit of element i is a
	// pure function of (seed, i): the same on every device. y may be x. Its
	// backward is Dropout on dy with the same seed.
	Dropout(y, x Buf, p float32, seed uint64)
}

// ReduceOp is how two elements become one.
type ReduceOp uint8

// The reductions. Mean is Sum followed by a division, which the caller does.
const (
	Sum ReduceOp = iota
	Prod
	Max
	Min
)

// Activation is an element-wise function.
type Activation uint8

// The activations. Identity is for fused kernels that apply none.
const (
	Identity Activation = iota
	ReLU
	Tanh
	Sigmoid
	GELU     // x * (1 + erf(x/sqrt 2)) / 2, Hendrycks and Gimpel 2016
	GELUTanh // its approximation, x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) / 2
	SiLU     // x * sigmoid(x)
)

// SavesInput reports whether the derivative of f is computed from x, because y
// does not determine it.
func (f Activation) SavesInput() bool { return f >= GELU }

// MatMul describes C = op(A) op(B) (+ bias) (then activation), row-major:
// op(A) is M x K, op(B) is K x N, C is M x N. LDA, LDB and LDC are the elements
// from one row to the next of A, B, C as stored; 0 means tightly packed.
// Activation is none that saves its input.
type MatMul struct {
	M, N, K        int
	TransA, TransB bool
	LDA, LDB, LDC  int
	Accumulate     bool
	Activation     Activation
}

// MatrixKernels are the dense products.
type MatrixKernels interface {
	// MatMul computes c as d says. bias has N elements or is the zero Buf. a and
	// b, each on its own, may be F16 or BF16: they are widened, and sums are in
	// float32 or better.
	MatMul(d MatMul, c, a, b, bias Buf)
	// SumRows sets out[j] = sum over i of a[i][j], for a bias's gradient.
	SumRows(out, a Buf, rows, cols int, accumulate bool)
}

// Conv describes a 2-d convolution: x is N x C x H x W, weights are row-major
// [K][C/Groups][R][S] whatever the layout of the activations, y is N x K x OH x
// OW. Each of Groups runs of C/Groups input channels makes K/Groups outputs.
// x has layout XLayout (Plain for a network's input, else Blocked16); y and dy
// are always Blocked16.
type Conv struct {
	N, C, H, W       int
	K, R, S          int
	StrideH, StrideW int
	PadH, PadW       int
	XLayout          Layout
	Accumulate       bool // for the gradients
	Groups           int  // 0 means 1; divides C and K
	DilateH, DilateW int  // pixels from one tap to the next; 0 means 1
}

// OutH returns the height of y.
func (d Conv) OutH() int { return (d.H+2*d.PadH-d.ReachH())/d.StrideH + 1 }

// OutW returns the width of y.
func (d Conv) OutW() int { return (d.W+2*d.PadW-d.ReachW())/d.StrideW + 1 }

// ReachH returns the rows from the first tap to the last.
func (d Conv) ReachH() int { return (d.R-1)*max(1, d.DilateH) + 1 }

// ReachW returns the columns from the first tap to the last.
func (d Conv) ReachW() int { return (d.S-1)*max(1, d.DilateW) + 1 }

// GroupC returns the input channels that one output channel sees.
func (d Conv) GroupC() int { return d.C / max(1, d.Groups) }

// GroupK returns the output channels of a group.
func (d Conv) GroupK() int { return d.K / max(1, d.Groups) }

// BatchNorm describes normalisation over n, h, w of each channel of a
// Blocked16 tensor (Plain with H = W = 1 for vectors: [N][C]).
type BatchNorm struct {
	N, C, H, W int
	Layout     Layout
	Activation Activation // Identity or ReLU, applied after the (residual) sum
	Accumulate bool       // dx is added to
}

// PoolKind tells maximum from average pooling.
type PoolKind uint8

// The pools. AvgPool divides by the number of elements inside the image unless
// CountPad says that padding counts (PyTorch's count_include_pad).
const (
	MaxPool PoolKind = iota
	AvgPool
)

// Pool describes pooling over Blocked16 images.
type Pool struct {
	Kind             PoolKind
	N, C, H, W       int
	R, S             int
	StrideH, StrideW int
	PadH, PadW       int
	CountPad         bool
	Accumulate       bool
}

// OutH returns the height of y.
func (d Pool) OutH() int { return (d.H+2*d.PadH-d.R)/d.StrideH + 1 }

// OutW returns the width of y.
func (d Pool) OutW() int { return (d.W+2*d.PadW-d.S)/d.StrideW + 1 }

// ImageKernels work on images in the Blocked16 layout.
type ImageKernels interface {
	// ConvForward sets y = conv(x, w) + bias (bias: K elements or zero Buf).
	ConvForward(d Conv, y, x, w, bias Buf)
	// ConvBackwardInput sets dx, in XLayout.
	ConvBackwardInput(d Conv, dx, dy, w Buf)
	// ConvBackwardWeight sets dw, row-major [K][C][R][S], summing over n, then
	// over rows and columns, in an order that depends on d only.
	ConvBackwardWeight(d Conv, dw, x, dy Buf)
	// SumChannels sets out[c] = sum of x over n, h, w, for a bias's gradient.
	SumChannels(out, x Buf, n, c, h, w int, accumulate bool)

	// Moments sets mean[c] and m2[c] = sum of (x - mean)^2, both F64 with C
	// elements, without cancellation for |mean| >> deviation.
	Moments(d BatchNorm, mean, m2, x Buf)
	// BatchNormForward sets y = act(scale[c]*(x - mean[c])*invstd[c] + shift[c]
	// (+ residual)); mean and invstd are F32 with C elements; residual is a
	// tensor like x or the zero Buf. y may be residual.
	BatchNormForward(d BatchNorm, y, x, mean, invstd, scale, shift, residual Buf)
	// BatchNormBackward takes dy, the saved x, mean, invstd, and y (for the
	// activation's mask; may be zero when Activation is Identity). It sets
	// dscale and dshift (C elements each, always overwritten), and dx. When
	// dresidual is not the zero Buf it receives dy through the activation
	// (overwritten). With frozen set, mean and invstd are constants
	// (evaluation statistics) and dx has only the direct term. dx may be dy.
	BatchNormBackward(d BatchNorm, dx, dresidual, dscale, dshift, dy, x, y, mean, invstd, scale Buf, frozen bool)

	// PoolForward sets y; arg (I32, as long as y, in y's layout) receives for
	// MaxPool the input offset h*W+w of the maximum (first in row order wins),
	// and may be zero otherwise.
	PoolForward(d Pool, y, arg, x Buf)
	// PoolBackward sets dx from dy and arg.
	PoolBackward(d Pool, dx, dy, arg Buf)
	// GlobalAvgForward sets y[n][c] (Plain) to the mean of a Blocked16 x.
	GlobalAvgForward(y, x Buf, n, c, h, w int)
	// GlobalAvgBackward spreads dy[n][c] over a Blocked16 dx.
	GlobalAvgBackward(dx, dy Buf, n, c, h, w int, accumulate bool)

	// Reorder converts N x C x H x W images between layouts.
	Reorder(dst Buf, dstLayout Layout, src Buf, srcLayout Layout, n, c, h, w int)
	// CopyChannels copies srcC channels of a Blocked16 or Plain src into a dst
	// of dstC channels starting at channel at. It is concat's forward;
	// ExtractChannels is its backward.
	CopyChannels(layout Layout, dst Buf, dstC, at int, src Buf, srcC, n, h, w int)
	// ExtractChannels copies channels [at, at+dstC) of src into dst, or with
	// accumulate adds them to it.
	ExtractChannels(layout Layout, dst Buf, dstC int, src Buf, srcC, at, n, h, w int, accumulate bool)
}

// CrossEntropy describes softmax cross-entropy over rows of logits.
type CrossEntropy struct {
	Rows, Classes int
	// Smoothing spreads this share of the target evenly over all classes.
	Smoothing float32
	// Ignore marks rows that count for nothing; used when HasIgnore.
	Ignore    int32
	HasIgnore bool
}

// LossKernels are the ends of networks.
type LossKernels interface {
	// CrossEntropyForward fills probs (Rows x Classes) and loss (F64, one
	// element: the SUM over counted rows), and correct (I32, one element: rows
	// whose largest logit, first wins, is the label). labels is I32.
	CrossEntropyForward(d CrossEntropy, loss, correct, probs, logits, labels Buf)
	// CrossEntropyBackward sets dlogits = seed * d(loss sum)/d(logits).
	CrossEntropyBackward(d CrossEntropy, dlogits, probs, labels Buf, seed float32)
	// SquaredErrorForward sets loss (F64, one element) to the sum of (x-t)^2.
	SquaredErrorForward(loss, x, t Buf)
	// SquaredErrorBackward sets dx = 2 * seed * (x - t).
	SquaredErrorBackward(dx, x, t Buf, seed float32)
}

// Update holds the numbers of one optimizer step over a flat segment. Scale
// multiplies the gradient first (unscaling times clipping).
type Update struct {
	Step        int // 1 for the first
	LR          float32
	Scale       float32
	WeightDecay float32
	Momentum    float32
	Dampening   float32
	Nesterov    bool
	Beta1       float32
	Beta2       float32
	Epsilon     float32
	Decoupled   bool // AdamW: decay acts on the weight, not through the gradient
}

// UpdateKernels are optimizer steps: one pass over weights, gradient, state.
type UpdateKernels interface {
	// SGD: g = Scale*grad + WeightDecay*w; with momentum m = Momentum*m +
	// (1-Dampening)*g (m = g on Step 1); w -= LR * (g, m, or g + Momentum*m).
	// momentum is the zero Buf when Momentum is 0.
	SGD(u Update, w, grad, momentum Buf)
	// Adam as PyTorch has it, bias-corrected; Decoupled makes it AdamW.
	Adam(u Update, w, grad, m, v Buf)
	// RMSProp: g = Scale*grad + WeightDecay*w; square = Beta2*square +
	// (1-Beta2)*g*g; g /= sqrt(square) + Epsilon; with momentum m = Momentum*m +
	// g; w -= LR * (g or m). momentum is the zero Buf when Momentum is 0.
	RMSProp(u Update, w, grad, square, momentum Buf)
	// AdaGrad: g = Scale*grad + WeightDecay*w; sum += g*g; w -= LR * g /
	// (sqrt(sum) + Epsilon).
	AdaGrad(u Update, w, grad, sum Buf)
	// LAMBMoments advances the moments as Adam does, of g = Scale*grad, and sets
	// squares[b] (F64), as SumSquares, to the sum over block b of the squares of
	// d = m/(1-Beta1^Step) / (sqrt(v)/sqrt(1-Beta2^Step) + Epsilon) +
	// WeightDecay*w.
	LAMBMoments(u Update, squares, w, grad, m, v Buf)
	// LAMBStep: w -= LR * d, with the d of LAMBMoments.
	LAMBStep(u Update, w, m, v Buf)
	// SumSquares sets out[b] (F64) to the sum of squares of block b of 128
	// elements (the last may be shorter), each summed in an order that depends
	// on the block's length only.
	SumSquares(out, x Buf)
	// AllFinite reports whether x holds neither NaN nor infinity.
	AllFinite(x Buf) bool
}

// NormBlock is the number of elements in one block of SumSquares.
const NormBlock = 128
