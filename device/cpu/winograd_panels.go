package cpu

// winogradPanels transforms the weights [K][C][3][3] into the panels of a
// product, [group][position][panel of the group][depth][16]. Part i is a panel.
type winogradPanels struct {
	*winogradTask
	weights []float32
}

// panelBatch is how many channels are transformed at once: their lines stay in
// the first-level cache.
const panelBatch = 16

func (t *winogradTask) transformWeights(k *kernels, w *workspace, weights []float32) {
	t.u = w.packed.floats((t.panels + t.perGroup - 1) / t.perGroup * t.groupLen)
	w.winogradPanels = winogradPanels{t, weights}
	k.pool.run(w, &w.winogradPanels, t.panels)
	w.winogradPanels = winogradPanels{}
}

func (t *winogradPanels) do(s *scratch, panel int) {
	const taps = 9
	d := &t.d
	lines := s.plane.floats(panelBatch * taps * block)
	temporary := s.winograd.temporary.floats(weightTemporary)
	depth, width := d.C, min(block, d.K-panel*block)
	if t.backward {
		depth, width = d.K, min(block, d.C-panel*block)
	}
	for first := 0; first < depth; first += panelBatch {
		n := min(panelBatch, depth-first)
		if t.backward {
			for i := range n {
				packTransposed(t.set, lines[i*taps*block:], t.weights[((first+i)*d.C+panel*block)*taps:], taps, taps, width)
			}
		} else {
			packTransposed(t.set, lines, t.weights[(panel*block*d.C+first)*taps:], d.C*taps, n*taps, width)
		}
		t.form.weights(&t.u[t.uAt(panel)+first*block], &lines[0], &temporary[0], t.uSlab*4, n)
	}
	for p := range t.positions {
		rest := t.u[t.uAt(panel)+p*t.uSlab:][:t.depth*block*block]
		clear(rest[depth*block:])
	}
}
