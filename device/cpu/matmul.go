package cpu

import "github.com/gradfusion/gradfusion/device"

// side is one factor of a product: count vectors of depth floats.
type side struct {
	data   []float32
	count  int
	stride int
	along  bool // vectors are stored one after another, not side by side
}

func (k *kernels) MatMul(d device.MatMul, c, a, b, bias device.Buf) {
	d.Check()
	an, bn, cn := d.Lens()
	device.Require("MatMul", "c", c, device.F32, cn)
	device.Require("MatMul", "a", a, device.F32, an)
	device.Require("MatMul", "b", b, device.F32, bn)
	if !bias.IsZero() {
		device.Require("MatMul", "bias", bias, device.F32, d.N)
	}
	if d.M == 0 || d.N == 0 {
		return
	}
	w := k.take()
	lda, ldb, ldc := d.Strides()
	t := &w.product
	*t = productTask{set: k.set, d: d, c: c.F32(), ldc: ldc}
	t.left = side{a.F32(), d.M, lda, !d.TransA}
	t.right = side{b.F32(), d.N, ldb, d.TransB}
	if t.turned = k.set.turn != nil && turns(d); t.turned {
		t.left, t.right = t.right, t.left
	}
	if !bias.IsZero() {
		t.bias = padBias(&w.bias, bias.F32()[:d.N])
	}
	k.packSides(w)
	t.tables(w)
	k.pool.run(w, t, t.blocks*t.groups)
	*t = productTask{}
	k.give(w)
}

// turns reports whether to compute the transpose of C instead, so that the
// smaller side is packed and the larger one is read where it lies. The weights
// are in sums, of which a processor does 32 in the time of a few moves.
func turns(d device.MatMul) bool {
	const pack, turn = 16, 16
	if !d.TransB {
		return false
	}
	straight := d.M*panels(d.N)*tileColumns*d.K + pack*d.N*d.K
	turned := d.N*panels(d.M)*tileColumns*d.K + pack*d.M*d.K + turn*d.M*d.N
	return turned < straight
}

// packSides packs what several parts share, and decides on the parts.
func (k *kernels) packSides(w *workspace) {
	t := &w.product
	t.panels = panels(t.right.count)
	t.rowsOf = productRows
	if t.turned {
		t.rowsOf = turnedRows
	}
	t.blocks = (t.left.count + t.rowsOf - 1) / t.rowsOf
	wide := max(tilePanels, panelFloats/(max(1, t.d.K)*tileColumns)/tilePanels*tilePanels)
	t.groups = (t.panels + wide - 1) / wide
	if k.pool.threads > 1 {
		t.groups = min(t.panels, max(t.groups, (4*k.pool.threads+t.blocks-1)/t.blocks))
	}
	// The panels of a single block are used once, so each part packs its own.
	if t.private = t.blocks == 1; !t.private {
		t.packed = k.packSide(w, &w.packed, t.right)
	}
	if !t.left.along {
		t.left.data = k.packSide(w, &w.left, t.left)
	}
}

// packSide packs all of s.
func (k *kernels) packSide(w *workspace, m *memory, s side) []float32 {
	dst := m.floats(panels(s.count) * w.product.d.K * tileColumns)
	w.pack = packTask{set: k.set, dst: dst, src: s, depth: w.product.d.K}
	k.pool.run(w, &w.pack, w.pack.parts())
	w.pack = packTask{}
	return dst
}
