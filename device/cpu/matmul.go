package cpu

import "github.com/gradfusion/gradfusion/device"

func (k *kernels) MatMul(d device.MatMul, c, a, b, bias device.Buf) {
	d.Check()
	an, bn, cn := d.Lens()
	device.RequireFloat("MatMul", "c", c, cn)
	device.RequireFloat("MatMul", "a", a, an)
	device.RequireFloat("MatMul", "b", b, bn)
	if !bias.IsZero() {
		device.Require("MatMul", "bias", bias, device.F32, d.N)
	}
	if d.M == 0 || d.N == 0 {
		return
	}
	w := k.take()
	lda, ldb, ldc := d.Strides()
	t := &w.product
	*t = productTask{set: k.set, d: d, c: k.set.tensor(c), ldc: ldc}
	t.left = k.set.side(a, d.M, lda, !d.TransA)
	t.right = k.set.side(b, d.N, ldb, d.TransB)
	if t.turned = k.set.turnsProducts && turns(d); t.turned {
		t.left, t.right = t.right, t.left
	}
	if !bias.IsZero() {
		t.bias = padBias(&w.bias, bias.F32()[:d.N])
	}
	if t.inParts() {
		k.runProductParts(w)
	} else {
		k.packSides(w)
		t.tables(w)
		k.pool.run(w, t, t.parts)
	}
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
	if t.left.count <= productAlone && !t.turned {
		t.rowsOf = productAlone
	}
	t.blocks = (t.left.count + t.rowsOf - 1) / t.rowsOf
	wide := max(tilePanels, panelFloats/(max(1, t.d.K)*tileColumns)/tilePanels*tilePanels)
	t.groups = (t.panels + wide - 1) / wide
	threads := k.pool.threads
	// A part that does all rows packs its panels itself, and uses them before
	// they leave the cache.
	if t.private = threads == 1 || t.blocks == 1 || t.groups >= 4*threads; t.private {
		if threads > 1 {
			t.groups = min(t.panels, max(t.groups, 4*threads))
		}
		t.parts = t.groups
	} else {
		t.groups = min(t.panels, max(t.groups, (4*threads+t.blocks-1)/t.blocks))
		t.parts = t.groups * t.blocks
		t.packed = k.packSide(w, t.right)
	}
	k.packLeft(w)
}

// packLeft packs or widens the left side, where it cannot be read as it lies.
func (k *kernels) packLeft(w *workspace) {
	t := &w.product
	if !t.left.along {
		w.rowBlocks = rowBlocksTask{k.set, w.room.floats(t.blocks * t.rowsOf * panels(t.d.K) * tileColumns), t.left, t.d.K, t.rowsOf}
		t.packedLeft = w.rowBlocks.dst
		k.pool.run(w, &w.rowBlocks, panels(t.d.K))
		w.rowBlocks = rowBlocksTask{}
	} else if t.left.widen != nil && t.groups > widenEachTime {
		w.widening = wideningTask{w.room.floats(t.left.count * t.d.K), t.left, t.d.K}
		t.left = side{data: w.widening.dst, count: t.left.count, stride: t.d.K, along: true}
		k.pool.run(w, &w.widening, (t.left.count+wideningRows-1)/wideningRows)
		w.widening = wideningTask{}
	}
}

// packSide packs all of s.
func (k *kernels) packSide(w *workspace, s side) []float32 {
	depth := w.product.d.K
	w.pack = packTask{set: k.set, dst: w.room.floats(panels(s.count) * depth * tileColumns), src: s, depth: depth}
	k.pool.run(w, &w.pack, w.pack.parts())
	dst := w.pack.dst
	w.pack = packTask{}
	return dst
}
