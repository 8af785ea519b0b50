package cpu

import "github.com/gradfusion/gradfusion/device"

// embeddingTask looks vectors up, or adds gradients to them. Part i of a lookup
// is a run of rows; part i of its gradient a run of columns, of which it passes
// all rows in order.
type embeddingTask struct {
	set      *kernelSet
	d        device.Embedding
	backward bool
	rows     tensor
	table    tensor // or its gradient, in float32
	ids      []int32
	columns  int // of a part of the gradient
}

// embeddingRows is how many rows a part of a lookup has: enough copying to be worth a
// thread, few enough for all threads to have some.
const embeddingRows = 128

func (k *kernels) EmbeddingForward(d device.Embedding, y, table, ids device.Buf) {
	d.RequireForward(y, table, ids)
	k.runEmbedding(embeddingTask{set: k.set, d: d, rows: k.set.tensor(y), table: k.set.tensor(table), ids: ids.I32()},
		(d.Rows+embeddingRows-1)/embeddingRows)
}

func (k *kernels) EmbeddingBackward(d device.Embedding, dtable, dy, ids device.Buf) {
	d.RequireBackward(dtable, dy, ids)
	each := columnsEach(d.Width, k.pool.threads)
	k.runEmbedding(embeddingTask{set: k.set, d: d, backward: true, rows: k.set.tensor(dy), table: k.set.tensor(dtable), ids: ids.I32(), columns: each},
		(d.Width+each-1)/each)
}

func (k *kernels) runEmbedding(t embeddingTask, parts int) {
	w := k.take()
	w.embedding = t
	k.pool.run(w, &w.embedding, parts)
	w.embedding = embeddingTask{}
	k.give(w)
}

func (t *embeddingTask) do(s *scratch, index int) {
	width := t.d.Width
	room := s.plane.floats(width)
	if !t.backward {
		for i := index * embeddingRows; i < min((index+1)*embeddingRows, t.d.Rows); i++ {
			id := int(t.ids[i])
			t.rows.put(t.table.read(room, id*width, (id+1)*width), i*width)
		}
		return
	}
	lo := index * t.columns
	hi := min(lo+t.columns, width)
	if !t.d.Accumulate {
		for v := range t.d.Count {
			clear(t.table.floats[v*width+lo : v*width+hi])
		}
	}
	for i, id := range t.ids[:t.d.Rows] {
		sum := t.table.floats[int(id)*width+lo : int(id)*width+hi]
		t.set.add(sum, sum, t.rows.read(room, i*width+lo, i*width+hi))
	}
}
