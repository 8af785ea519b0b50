package cpu

// winogradPanels transforms the weights [K][C][3][3] into the panels of the
// products of a task, [group][position][panel of the group][depth][16]. Part i
// is a panel.
type winogradPanels struct{ *winogradTask }

// panelBatch is how many channels are transformed at once: their lines stay in
// the first-level cache.
const panelBatch = 16

func (t *winogradPanels) do(s *scratch, panel int) {
	t.fillPanel(s, t.u[panel/t.perGroup*t.groupLen:], panel, 0, t.depth)
}

// fillPanel fills in a panel of the group at u from count blocks of channels,
// which are all where it is cut into parts.
func (t *winogradTask) fillPanel(s *scratch, u []float32, panel, from, count int) {
	u = u[panel%t.perGroup*t.panelLen:]
	if t.parted {
		t.partPanel(s, u, panel)
		return
	}
	t.transformPanel(s, u, t.uSlab, panel, from, count)
}

// transformPanel fills in the panel at u, whose positions are slab floats apart,
// from count blocks of channels.
func (t *winogradTask) transformPanel(s *scratch, u []float32, slab, panel, from, count int) {
	const taps = 9
	d := &t.d
	turned := s.plane.floats(2 * panelBatch * taps * block)
	lines := turned[panelBatch*taps*block:]
	temporary := s.winograd.temporary.floats(weightTemporary)
	channels, width := d.C, min(block, d.K-panel*block)
	if t.backward {
		channels, width = d.K, min(block, d.C-panel*block)
	}
	end := min((from+count)*block, channels)
	for c := from * block; c < end; c += panelBatch {
		n := min(panelBatch, end-c)
		at, tap, item := &u[(c-from*block)*block], block*4, taps*block*4
		if t.backward {
			src, stride := t.weights.rows(&s.wide, (c*d.C+panel*block)*taps, d.C*taps, n, width*taps)
			packTurned(t.set, lines, turned, src, stride, taps, n, width)
			tap, item = block*block*4, block*4
		} else {
			src, stride := t.weights.rows(&s.wide, (panel*block*d.C+c)*taps, d.C*taps, width, n*taps)
			packTransposed(t.set, lines, src, stride, n*taps, width)
		}
		t.form.weights(at, &lines[0], &temporary[0], slab*4, tap, item, n)
	}
	if padding := (from+count)*block - end; padding > 0 {
		for p := range t.positions {
			clear(u[p*slab+(end-from*block)*block:][:padding*block])
		}
	}
}
