package nn

import (
	"strings"

	"gorgonia.org/tensor"

	"github.com/gradfusion/gradfusion/device"
)

// Param is a trainable tensor: a float32 master, one gradient slot for each use
// in a forward pass, and hooks that fire when a gradient is complete. Its
// memory is bound by its owner and may move when buckets are cut, so views of
// Value must not be kept across a step. Not safe for concurrent use.
type Param struct {
	Name   string // unique in the model, the same in every layout
	Shape  []int  // of the part, where there is one
	Decay  bool   // whether weight decay applies by default: not to biases and norms
	Frozen bool   // no gradient, no update
	Init   Init
	Part   *Part // of a whole tensor that this is; nil: all of it

	Value device.Buf // the master, F32

	// Sparse keeps the gradient of a table by rows, of which a pass looks up few:
	// see TouchedRows.
	Sparse bool
	rows   rowSet

	version int     // of the master; see Changed
	half    rounded // the master as products read it

	slots  []slot
	hooks  []func(p *Param, use, leaf int)
	before func() error
}

type slot struct {
	buf     device.Buf
	written bool
}

// Len returns the number of elements.
func (p *Param) Len() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// shape is Shape for error messages; a nil Param has none.
func (p *Param) shape() string {
	if p == nil {
		return "none"
	}
	return Plain(p.Shape...).String()
}

// layerOf returns the name of the layer that a parameter belongs to.
func layerOf(p *Param) string {
	if i := strings.LastIndexByte(p.Name, '.'); i > 0 {
		return p.Name[:i]
	}
	return p.Name
}

// Use puts the parameter on the tape, once for each operation that reads it. It
// first does what must happen before (see Before); a failure panics with a
// *UseError, which Catch returns.
func (p *Param) Use(t *Tape) *Var {
	if p.before != nil {
		if err := p.before(); err != nil {
			panic(&UseError{Param: p.Name, Err: err})
		}
	}
	if p.Value.Len != p.Len() {
		fail(p.Name, "use", "no memory of %d elements is bound: call Materialize first", p.Len())
	}
	v := t.newVar()
	v.Shape, v.Value, v.param = Plain(p.Shape...), p.Value, p
	v.needs = t.Pass.Training && !p.Frozen
	v.use = t.use(p)
	return v
}

// Before sets what must happen before a use, such as the wait for an
// all-gather of this parameter; nil for nothing.
func (p *Param) Before(f func() error) { p.before = f }

// OnGrad adds a hook that is called once for each use and micro-batch, by the
// goroutine that runs the backward pass, as soon as the gradient of that use is
// in its slot. leaf is the micro-batch's global index.
func (p *Param) OnGrad(f func(p *Param, use, leaf int)) { p.hooks = append(p.hooks, f) }

// Bind sets the memory of the gradient of one use; its content counts as
// absent until something is written. A Sparse parameter has one slot for all
// uses, which must be zero unless it is the one that is bound already.
func (p *Param) Bind(use int, grad device.Buf) {
	if p.Sparse {
		p.clearRows()
		use = 0
	}
	for len(p.slots) <= use {
		p.slots = append(p.slots, slot{})
	}
	p.slots[use] = slot{buf: grad}
}

// ZeroGrad makes the next gradient of each use overwrite its slot; until then
// gradients add up. The slot of a Sparse parameter becomes zero.
func (p *Param) ZeroGrad() {
	p.clearRows()
	for i := range p.slots {
		p.slots[i].written = false
	}
}

// Grad returns the slot of one use, and whether a gradient has been written to
// it since ZeroGrad or Bind.
func (p *Param) Grad(use int) (grad device.Buf, written bool) {
	if use >= len(p.slots) {
		return device.Buf{}, false
	}
	return p.slots[use].buf, p.slots[use].written
}

// Uses returns the number of slots, which is the uses seen or bound so far.
func (p *Param) Uses() int { return len(p.slots) }

// Tensor returns the master as a gorgonia tensor that shares its memory; it
// goes stale when buckets are cut. Values that are still on their way (see Before)
// are not waited for.
func (p *Param) Tensor() *tensor.Dense {
	return tensor.New(tensor.WithShape(p.Shape...), tensor.WithBacking(p.Value.F32()))
}

// GradTensor is Tensor for the gradient of the first use; nil when there is none.
func (p *Param) GradTensor() *tensor.Dense {
	g, ok := p.Grad(0)
	if !ok {
		return nil
	}
	return tensor.New(tensor.WithShape(p.Shape...), tensor.WithBacking(g.F32()))
}

func (p *Param) gradSlot(t *Tape, use int) (buf device.Buf, accumulate bool) {
	if p.Sparse {
		p.rows.all = true // whoever knows the rows calls sparseSlot
		return p.sparseSlot(t), true
	}
	for len(p.slots) <= use {
		p.slots = append(p.slots, slot{})
	}
	s := &p.slots[use]
	if s.buf.IsZero() {
		b, err := t.device.Alloc(device.F32, p.Len())
		if err != nil {
			panic(&UseError{Param: p.Name, Err: err})
		}
		s.buf = b
	}
	accumulate, s.written = s.written, true
	return s.buf, accumulate
}

func (p *Param) deliver(use, leaf int) {
	for _, f := range p.hooks {
		f(p, use, leaf)
	}
}
