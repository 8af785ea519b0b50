package nn

import (
	"slices"

	"github.com/gradfusion/gradfusion/device"
)

// SparseGrad is the gradient of a table by rows: all others are zero.
type SparseGrad struct {
	Rows   []int32    // ascending, each once
	Values device.Buf // F32: these rows, one after another

	memory []float32 // of Values
}

// Resize gives Values n elements of undefined content, in the memory that it has
// where that is enough.
func (g *SparseGrad) Resize(n int) {
	if cap(g.memory) < n {
		g.memory = make([]float32, n+n/4)
	}
	g.Values = device.FromF32(g.memory[:n])
}

// rowSet is the rows of a sparse gradient that something was added to.
type rowSet struct {
	marks  []bool
	list   []int32
	sorted bool
	all    bool // an operation wrote that may have written anywhere
}

func (r *rowSet) add(count int, rows []int32) {
	if len(r.marks) != count {
		r.marks = make([]bool, count)
	}
	for _, i := range rows {
		if !r.marks[i] {
			r.marks[i] = true
			r.list = append(r.list, i)
			r.sorted = false
		}
	}
}

func (r *rowSet) forget() {
	for _, i := range r.list {
		r.marks[i] = false
	}
	r.list, r.all, r.sorted = r.list[:0], false, false
}

// TouchedRows returns the rows of a Sparse parameter's gradient that something
// was added to since ZeroGrad or Bind, in ascending order; the others are zero.
// all says that it may be any row, because an operation that is no lookup used
// the parameter, and then rows is nil. The slice is valid until the next change.
func (p *Param) TouchedRows() (rows []int32, all bool) {
	if p.rows.all || !p.Sparse {
		return nil, true
	}
	if !p.rows.sorted {
		slices.Sort(p.rows.list)
		p.rows.sorted = true
	}
	return p.rows.list, false
}

// Touch says that the owner of the slot has added to these rows, or with all to
// any: those of other ranks.
func (p *Param) Touch(rows []int32, all bool) {
	p.rows.add(p.Shape[0], rows)
	p.rows.all = p.rows.all || all
	if len(p.slots) > 0 {
		p.slots[0].written = true
	}
}

// SparseGrad copies the touched rows of the gradient to g, whose memory it uses
// again where that is large enough. It reports false, and leaves g as it is, where
// all rows count as touched.
func (p *Param) SparseGrad(g *SparseGrad) bool {
	rows, all := p.TouchedRows()
	if all {
		return false
	}
	width := p.Len() / p.Shape[0]
	g.Rows = append(g.Rows[:0], rows...)
	g.Resize(len(rows) * width)
	for k, i := range rows {
		copy(g.memory[k*width:(k+1)*width], p.slots[0].buf.F32()[int(i)*width:])
	}
	return true
}

// tableGrad is GradOf for a table to whose given rows only something is added.
func (t *Tape) tableGrad(w *Var, rows []int32) (dw device.Buf, accumulate bool) {
	p := w.param
	if !p.Sparse {
		return t.GradOf(w)
	}
	p.rows.add(p.Shape[0], rows)
	return p.sparseSlot(t), true
}

// sparseSlot is the one slot of a sparse parameter, zero but for touched rows.
func (p *Param) sparseSlot(t *Tape) device.Buf {
	if len(p.slots) == 0 {
		p.slots = append(p.slots, slot{})
	}
	s := &p.slots[0]
	if s.buf.IsZero() {
		b, err := t.device.Alloc(device.F32, p.Len())
		if err != nil {
			panic(&UseError{Param: p.Name, Err: err})
		}
		s.buf = b
	}
	s.written = true
	return s.buf
}

// clearRows makes the slot of a sparse parameter zero.
func (p *Param) clearRows() {
	if !p.Sparse || len(p.slots) == 0 || p.slots[0].buf.IsZero() {
		return
	}
	grad, width := p.slots[0].buf.F32(), p.Len()/p.Shape[0]
	if p.rows.all {
		clear(grad)
	} else {
		for _, i := range p.rows.list {
			clear(grad[int(i)*width : (int(i)+1)*width])
		}
	}
	p.rows.forget()
}
