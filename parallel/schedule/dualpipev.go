package schedule

// DualPipeV gives rank r the stages r and 2p-1-r and runs them as the two
// directions of one pipeline: while the pipeline is full, a forward of one stage
// alternates with the backward pass of the other, whose communication it hides;
// while it fills and drains, backward passes are cut in halves (DeepSeek-AI
// 2025, the variant of DualPipe without a second copy of the weights).
//
// With equal costs F = I = W and m >= 2p the idle time is p-1 of them, as of
// ZeroBubbleV, and a rank holds at most 2p+1 of its stages' micro-batches. With
// fewer micro-batches the pipeline never is full: that is ZeroBubbleV.
func DualPipeV(ranks, micros int) Schedule {
	if micros < 2*ranks {
		return ZeroBubbleV(ranks, micros)
	}
	s := make(Schedule, ranks)
	for r := range s {
		d := dual{stages: [2]int{r, 2*ranks - 1 - r}}
		d.fill(ranks, r)
		for range micros - 2*ranks + r + 1 {
			d.forward(0)
			d.backward(1, false)
			d.forward(1)
			d.backward(0, false)
		}
		d.drain(ranks, r)
		s[r] = d.list
	}
	return WithArms(s, veeStages(ranks))
}

// dual writes one rank's list. Its directions are 0 for the way down, 1 for the
// way up.
type dual struct {
	stages           [2]int
	list             []Action
	forwards, inputs [2]int   // done
	later            []Action // weights' gradients put off
}

func (d *dual) forward(way int) {
	d.list = append(d.list, Action{Forward, d.stages[way], d.forwards[way]})
	d.forwards[way]++
}

func (d *dual) backward(way int, half bool) {
	a := Action{Backward, d.stages[way], d.inputs[way]}
	d.inputs[way]++
	if half {
		a.Kind = Input
		d.later = append(d.later, Action{Weight, a.Stage, a.Micro})
	}
	d.list = append(d.list, a)
}

// weight does the oldest of what was put off.
func (d *dual) weight() {
	d.list = append(d.list, d.later[0])
	d.later = d.later[1:]
}

// fill starts the way down, then both, and gives each gradient on at once where
// it is the only one.
func (d *dual) fill(ranks, r int) {
	for range 2 * (ranks - 1 - r) {
		d.forward(0)
	}
	for range r + 1 {
		d.forward(0)
		d.forward(1)
	}
	for range ranks - 1 - r {
		d.backward(1, true)
		d.weight()
		d.forward(1)
	}
}

// drain ends the forwards, then the backward passes of both ways. From the
// middle of those on, weights' gradients wait for the idle time at the end.
func (d *dual) drain(ranks, r int) {
	for range ranks - 1 - r {
		d.backward(1, false)
		d.forward(1)
		d.backward(0, false)
	}
	for i := range 2 * (r + 1) {
		d.backward(1-i%2, i > r)
	}
	for range ranks - 1 - r {
		d.weight()
		d.backward(0, true)
	}
	for range r + 1 {
		d.weight()
	}
}
