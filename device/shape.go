package device

// ImageLen returns the elements of n images of c channels in layout l, padding
// channels included.
func ImageLen(l Layout, n, c, h, w int) int {
	if l == Blocked16 {
		c = Blocks(c) * Block
	}
	return n * c * h * w
}

// XLen returns the elements of x and dx.
func (d Conv) XLen() int { return ImageLen(d.XLayout, d.N, d.C, d.H, d.W) }

// YLen returns the elements of y and dy.
func (d Conv) YLen() int { return ImageLen(Blocked16, d.N, d.K, d.OutH(), d.OutW()) }

// WeightLen returns the elements of w and dw.
func (d Conv) WeightLen() int { return d.K * d.GroupC() * d.R * d.S }

// Check panics with a *ShapeError when no such convolution exists.
func (d Conv) Check(kernel string) {
	RequireThat(d.N >= 0 && d.C > 0 && d.K > 0, kernel, "descriptor", "needs C and K above 0")
	RequireThat(d.R > 0 && d.S > 0, kernel, "descriptor", "needs a window and strides above 0")
	RequireThat(d.DilateH >= 0 && d.DilateW >= 0, kernel, "descriptor", "has a negative dilation")
	groups := max(1, d.Groups)
	RequireThat(d.Groups >= 0 && d.C%groups == 0 && d.K%groups == 0, kernel, "descriptor", "has groups that do not divide C and K")
	checkWindow(kernel, d.H, d.W, d.ReachH(), d.ReachW(), d.StrideH, d.StrideW, d.PadH, d.PadW)
}

// Len returns the elements of x, y, dx and dy.
func (d BatchNorm) Len() int { return ImageLen(d.Layout, d.N, d.C, d.H, d.W) }

// XLen returns the elements of x and dx.
func (d Pool) XLen() int { return ImageLen(Blocked16, d.N, d.C, d.H, d.W) }

// YLen returns the elements of y, dy and arg.
func (d Pool) YLen() int { return ImageLen(Blocked16, d.N, d.C, d.OutH(), d.OutW()) }

// Check panics with a *ShapeError when no such pooling exists.
func (d Pool) Check(kernel string) {
	RequireThat(d.N >= 0 && d.C > 0, kernel, "descriptor", "needs C above 0")
	checkWindow(kernel, d.H, d.W, d.R, d.S, d.StrideH, d.StrideW, d.PadH, d.PadW)
}

func checkWindow(kernel string, h, w, r, s, strideH, strideW, padH, padW int) {
	RequireThat(r > 0 && s > 0 && strideH > 0 && strideW > 0, kernel, "descriptor", "needs a window and strides above 0")
	RequireThat(padH >= 0 && padW >= 0, kernel, "descriptor", "has negative padding")
	RequireThat(h > 0 && w > 0 && h+2*padH >= r && w+2*padW >= s, kernel, "descriptor", "has a window larger than the padded image")
}

// Check panics with a *ShapeError when the strides are too short.
func (d MatMul) Check() {
	lda, ldb, ldc := d.Strides()
	aw, bw := d.K, d.N
	if d.TransA {
		aw = d.M
	}
	if d.TransB {
		bw = d.K
	}
	RequireThat(d.M >= 0 && d.N >= 0 && d.K >= 0, "MatMul", "descriptor", "has a negative size")
	RequireThat(!d.Activation.SavesInput(), "MatMul", "activation", "needs its input in the backward pass: apply it alone")
	RequireThat(lda >= aw && ldb >= bw && ldc >= d.N, "MatMul", "descriptor", "has a stride shorter than a row")
}

// Strides returns LDA, LDB and LDC with 0 replaced by the tight stride.
func (d MatMul) Strides() (lda, ldb, ldc int) {
	lda, ldb, ldc = d.LDA, d.LDB, d.LDC
	if lda == 0 {
		lda = d.K
		if d.TransA {
			lda = d.M
		}
	}
	if ldb == 0 {
		ldb = d.N
		if d.TransB {
			ldb = d.K
		}
	}
	if ldc == 0 {
		ldc = d.N
	}
	return lda, ldb, ldc
}

// Lens returns the elements that a, b and c span at least.
func (d MatMul) Lens() (a, b, c int) {
	lda, ldb, ldc := d.Strides()
	ar, aw, br, bw := d.M, d.K, d.K, d.N
	if d.TransA {
		ar, aw = aw, ar
	}
	if d.TransB {
		br, bw = bw, br
	}
	return span(ar, aw, lda), span(br, bw, ldb), span(d.M, d.N, ldc)
}

func span(rows, width, stride int) int {
	if rows == 0 || width == 0 {
		return 0
	}
	return (rows-1)*stride + width
}
