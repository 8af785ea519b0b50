package cpu

import "github.com/gradfusion/gradfusion/device"

// ConvBackwardInput is a convolution of dy with the weights turned round. With
// a stride, the pixels of dx fall into StrideH x StrideW phases by the remainder
// of their padded position; pixel y = phase + stride*q takes the taps r (times
// the dilation) = phase + stride*t from row q-t of dy. No zeros are inserted and
// none multiplied.
func (k *kernels) ConvBackwardInput(d device.Conv, dx, dy, weights device.Buf) {
	requireConv("ConvBackwardInput", d, "dx", dx, "dy", dy, "w", weights)
	if d.N == 0 {
		return
	}
	if d = dilated(d); d.Groups > 1 {
		k.groupedBackwardInput(d, dx, dy, weights)
		return
	}
	if form := k.winogradFor(d); form != nil {
		k.winogradBackwardInput(form, d, dx, dy, weights)
		return
	}
	w := k.take()
	t := &w.conv
	*t = convTask{
		set: k.set, in: k.set.tensor(dy), out: k.set.tensor(dx), image: dyPadded(d),
		inLen: d.YLen() / d.N, outPlane: d.H * d.W * block, panels: device.Blocks(d.C),
	}
	if d.Accumulate {
		t.flags = flagAccumulate
	}
	if d.XLayout == device.Plain {
		// The plane is scratch; the plain image is added to afterwards.
		t.plainInto = d.C
	}
	t.lastIsNarrow = t.lastMask.last(d.C)
	taps := t.backwardPhases(w, d)
	t.weights = k.packBackward(w, d, weights, taps)
	t.panelLen = len(t.weights) / t.panels
	k.runConv(w, d.N)
}

// dyPadded returns dy with the zeros that the taps of dx's border reach.
func dyPadded(d device.Conv) padded {
	top := max(0, (d.ReachH()-1)/d.StrideH-d.PadH/d.StrideH)
	left := max(0, (d.ReachW()-1)/d.StrideW-d.PadW/d.StrideW)
	height := top + (d.H-1+d.PadH)/d.StrideH + 1
	width := left + (d.W-1+d.PadW)/d.StrideW + 1
	return around(device.Blocks(d.K), d.OutH(), d.OutW(), top, left, height, width, block)
}

// backwardPhases fills in t.phases and returns where each tap's weights go.
func (t *convTask) backwardPhases(w *workspace, d device.Conv) []tap {
	w.rows = grow(w.rows, d.H*d.W)
	w.steps = grow(w.steps, t.image.planes*d.R*d.S)
	w.taps = grow(w.taps, d.R*d.S)
	w.phases = grow(w.phases, d.StrideH*d.StrideW)
	rows, steps, panelAt := w.rows, w.steps, 0
	for i := range w.phases {
		ph := &w.phases[i]
		remH, remW := i/d.StrideW, i%d.StrideW
		n := t.phaseRows(rows, d, remH, remW)
		count := t.phaseTaps(w.taps, steps, d, remH, remW, panelAt)
		*ph = phase{rows: rows[:n], steps: steps[:count*t.image.planes], blocks: count * t.image.planes, panelAt: panelAt}
		for s := count; s < len(ph.steps); s++ {
			ph.steps[s] = ph.steps[s%count] + t.image.offset(s/count, 0, 0)
		}
		rows, steps = rows[n:], steps[len(ph.steps):]
		panelAt += len(ph.steps) * block * block
	}
	t.phases = w.phases
	return w.taps
}

// phaseTaps fills in the taps of one phase, and their steps for the first plane,
// and returns how many there are.
func (t *convTask) phaseTaps(taps []tap, steps []int64, d device.Conv, remH, remW, panelAt int) int {
	within := func(i int) (y, x int, ok bool) {
		y, x = i/d.S*d.DilateH, i%d.S*d.DilateW
		return y, x, y%d.StrideH == remH && x%d.StrideW == remW
	}
	count := 0
	for i := range d.R * d.S {
		if y, x, ok := within(i); ok {
			steps[count] = -t.image.offset(0, y/d.StrideH, x/d.StrideW)
			taps[i].at = panelAt + count*block*block
			count++
		}
	}
	for i := range d.R * d.S {
		if _, _, ok := within(i); ok {
			taps[i].stride = count * block * block
		}
	}
	return count
}

// phaseRows fills in the pixels of one phase and returns how many there are.
func (t *convTask) phaseRows(rows []row, d device.Conv, remH, remW int) int {
	n := 0
	for y := range d.H {
		if (y+d.PadH)%d.StrideH != remH {
			continue
		}
		for x := range d.W {
			if (x+d.PadW)%d.StrideW != remW {
				continue
			}
			qy, qx := (y+d.PadH)/d.StrideH+t.image.top, (x+d.PadW)/d.StrideW+t.image.left
			rows[n] = row{t.image.offset(0, qy, qx), int64((y*d.W + x) * block * 4)}
			n++
		}
	}
	return n
}
