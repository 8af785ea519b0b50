package cpu

// attentionHalves are tensors of which some have 16 bits. A thread brings one head
// of one sequence into float32, computes it there and rounds the results.
type attentionHalves struct {
	used             bool
	qkv, y, dqkv, dy tensor
}

// widen makes t the head alone: queries, keys and values one after another.
func (t *attentionHead) widen(sequence, head int) {
	all, length, width := t.attentionTask, t.d.Length, t.width
	one := &t.m.widened
	*one = *all
	t.attentionTask, t.qkv, t.y = one, 0, 0
	one.wide, one.token, one.apart = width, width, length*width
	n := length * width
	room := t.m.head.floats(8 * n)
	one.qkv, one.y, one.dqkv, one.dy = room[:3*n], room[3*n:4*n], room[4*n:7*n], room[7*n:]
	h := &all.halves
	for part := range 3 {
		t.move(all, &h.qkv, one.qkv[part*n:], sequence, head, part, 3, (*tensor).take)
		if all.backward && all.d.Accumulate {
			t.move(all, &h.dqkv, one.dqkv[part*n:], sequence, head, part, 3, (*tensor).take)
		}
	}
	if all.backward {
		t.move(all, &h.y, one.y, sequence, head, 0, 1, (*tensor).take)
		t.move(all, &h.dy, one.dy, sequence, head, 0, 1, (*tensor).take)
	}
}

// round stores the results of the head.
func (t *attentionHead) round(sequence, head int) {
	one, n := t.attentionTask, t.d.Length*t.width
	if !one.backward {
		t.move(one, &one.halves.y, one.y, sequence, head, 0, 1, (*tensor).put)
		return
	}
	for part := range 3 {
		t.move(one, &one.halves.dqkv, one.dqkv[part*n:], sequence, head, part, 3, (*tensor).put)
	}
}

// move applies f to the lines of a head in a tensor of parts times its width a
// token, and to those of one, where they are together.
func (t *attentionHead) move(task *attentionTask, all *tensor, one []float32, sequence, head, part, parts int, f func(*tensor, []float32, int)) {
	width, token := t.width, task.d.Heads*t.width
	for i := range task.d.Length {
		at := ((sequence*task.d.Length+i)*parts+part)*token + head*width
		f(all, one[i*width:][:width], at)
	}
}
