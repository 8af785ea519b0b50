package nn

import (
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
)

// Op is one recorded operation. Its backward pass has two halves, which a
// schedule may run apart: BackwardInput computes the gradients of the inputs
// (and may keep what the other half needs), BackwardWeight those of the
// parameters. Both find the output's gradient with Tape.OutGrad.
type Op interface {
	BackwardInput(t *Tape)
	BackwardWeight(t *Tape)
}

// Pass says what a forward pass is for. Every random choice in it is a pure
// function of Seed, Step and Micro.
type Pass struct {
	Training bool
	Seed     uint64
	Step     int // steps completed before this one; spans count steps from 1
	Micro    int // global index of the micro-batch in its step: the leaf
	// Recompute makes a training pass keep the inputs and outputs of blocks
	// only; the backward pass runs each block again before it needs the rest.
	// Gradients and statistics keep their bits.
	Recompute bool
	// Precision says what has 16 bits.
	Precision Precision
}

// Tape records a forward pass and owns its activations. It reuses records,
// Vars and memory, so that a repeated pass allocates nothing. A Tape is used by
// one goroutine; a rank that keeps several micro-batches in flight has a tape
// for each.
type Tape struct {
	Pass Pass
	// Events, when set, receives a span for each block's forward and backward.
	Events *observe.Recorder

	device  device.Device
	kernels device.Kernels
	arena   *device.Arena

	passes  int // begun
	ops     []Op
	count   int // recorded operations; ops may be longer, kept for reuse
	vars    []*Var
	used    int
	scratch []scratch
	kept    []device.Buf
	lists   []*Var
	uses    []Use
	usesOf  map[*Param]int
	marks   []mark
	seeds   map[string]uint64 // how often each name has asked for one

	inner  []*Tape // of blocks that are recomputed
	inners int     // used in this pass
	replay replay  // set in these
}

// mark says that the operations from index first on belong to a block.
type mark struct {
	block string
	first int
}

type scratch struct {
	buf      device.Buf
	producer int
}

// Use is one use of a parameter in a forward pass.
type Use struct {
	Param *Param
	Index int // 0 for the parameter's first use in the pass
}

// NewTape returns an empty tape over dev.
func NewTape(dev device.Device) *Tape {
	return &Tape{device: dev, kernels: dev.Kernels(), arena: device.NewArena(dev), usesOf: map[*Param]int{}, seeds: map[string]uint64{}}
}

// Kernels returns the arithmetic that operations call.
func (t *Tape) Kernels() device.Kernels { return t.kernels }

// Device returns the tape's device.
func (t *Tape) Device() device.Device { return t.device }

// Arena returns the memory of activations, for short-lived scratch in
// operations: what is taken must be put back by the same call.
func (t *Tape) Arena() *device.Arena { return t.arena }

// Begin forgets the last pass, takes back its memory and starts another. Vars
// of the last pass become invalid.
func (t *Tape) Begin(p Pass) {
	for i := t.count - 1; i >= -1; i-- {
		t.freeAfter(i)
	}
	for _, b := range t.kept {
		t.arena.Put(b)
	}
	for _, inner := range t.inner[:t.inners] {
		inner.Begin(p)
	}
	t.Pass, t.count, t.inners = p, 0, 0
	t.passes++
	t.kept = t.kept[:0]
	t.lists, t.uses = t.lists[:0], t.uses[:0]
	t.marks = t.marks[:0]
	clear(t.usesOf)
	clear(t.seeds)
}

// Uses returns the parameters in the order in which the pass used them; the
// backward pass delivers gradients in the reverse order. The slice is the
// tape's.
func (t *Tape) Uses() []Use { return t.uses }

// Input puts a value on the tape. It stays the caller's and must not change
// until the backward pass is over. needsGrad asks for its gradient, as a
// pipeline stage does.
func (t *Tape) Input(b device.Buf, s Shape, needsGrad bool) *Var {
	if b.Len < s.Len() {
		fail("", "input", "a buffer of %d elements for shape %s", b.Len, s)
	}
	v := t.newVar()
	v.Shape, v.Value, v.needs, v.producer = s, b, needsGrad && t.Pass.Training, -1
	return v
}

// Record appends an operation of type T and returns its record, zeroed, to be
// filled in. The record of the last pass at the same place is used again when
// it has the same type, which it has when the network is the same.
func Record[T any, P interface {
	*T
	Op
}](t *Tape) P {
	if t.count < len(t.ops) {
		if p, ok := t.ops[t.count].(P); ok {
			var zero T
			*p = zero
			t.count++
			return p
		}
		p := P(new(T))
		t.ops[t.count] = p
		t.count++
		return p
	}
	p := P(new(T))
	t.ops = append(t.ops, p)
	t.count++
	return p
}

// Output makes the result of the operation that was recorded last; its content
// is undefined. It needs a gradient when any of inputs does, and has their type
// as Precision says.
func (t *Tape) Output(s Shape, inputs ...*Var) *Var {
	return t.output(t.Pass.Precision.passive(inputs), s, inputs)
}

func (t *Tape) output(typ device.Type, s Shape, inputs []*Var) *Var {
	v := t.newVar()
	v.Shape, v.owned = s, true
	v.Value = t.arena.Get(typ, s.Len())
	for _, in := range inputs {
		v.needs = v.needs || in.NeedsGrad()
	}
	return v
}

// View makes a Var of another shape over the same memory: no operation, no
// copy; the gradient goes to x.
func (t *Tape) View(x *Var, s Shape) *Var {
	if s.Len() != x.Shape.Len() || s.Layout != x.Shape.Layout {
		fail("", "reshape", "%s does not become %s", x.Shape, s)
	}
	return t.viewAs(x, s)
}

func (t *Tape) viewAs(x *Var, s Shape) *Var {
	v := t.newVar()
	v.Shape, v.Value, v.needs, v.base = s, x.Value, x.needs, x
	return v
}

// Scratch returns memory that lives until the operation recorded last has run
// its backward pass.
func (t *Tape) Scratch(typ device.Type, n int) device.Buf {
	b := t.arena.Get(typ, n)
	t.scratch = append(t.scratch, scratch{b, t.count - 1})
	return b
}

// Keep returns memory that lives until the next Begin, for results that are
// read after the backward pass.
func (t *Tape) Keep(typ device.Type, n int) device.Buf {
	if t.replay.outer != nil {
		return t.replay.outer.Keep(typ, n)
	}
	b := t.arena.Get(typ, n)
	t.kept = append(t.kept, b)
	return b
}

// List returns a slice with the given Vars that lives as long as the pass, so
// that blocks need not allocate.
func (t *Tape) List(vars ...*Var) []*Var {
	at := len(t.lists)
	t.lists = append(t.lists, vars...)
	return t.lists[at:len(t.lists):len(t.lists)]
}

// Seed returns a seed for a random operation: a function of the pass, of name,
// which is the layer's, and of how often the pass has asked for this name. It
// does not depend on what else the tape holds, so a model cut into pipeline
// stages draws the same.
func (t *Tape) Seed(name string) uint64 {
	if t.replay.outer != nil {
		return t.replay.draw(name)
	}
	t.seeds[name]++
	return Hash(HashString(t.Pass.Seed, name), uint64(t.Pass.Step), uint64(t.Pass.Micro), t.seeds[name])
}

// use counts one more use of p and returns how many there were before.
func (t *Tape) use(p *Param) int {
	if t.replay.outer != nil {
		return t.replay.count(p)
	}
	n := t.usesOf[p]
	t.usesOf[p] = n + 1
	t.uses = append(t.uses, Use{Param: p, Index: n})
	return n
}

// release takes back what a block made, as Vars and scratch from the given
// indices on, and what it read, except for what it gives.
func (t *Tape) release(vars, scratch int, in, out []*Var) {
	for _, v := range t.vars[vars:t.used] {
		t.drop(v, out)
	}
	for _, v := range in {
		t.drop(v.root(), out)
	}
	for _, s := range t.scratch[scratch:] {
		t.arena.Put(s.buf)
	}
	t.scratch = t.scratch[:scratch]
}

func (t *Tape) drop(v *Var, out []*Var) {
	for _, o := range out {
		if o.root() == v {
			return
		}
	}
	if v.owned {
		t.arena.Put(v.Value)
		v.Value, v.owned = device.Buf{}, false
	}
}

func (t *Tape) newVar() *Var {
	if t.used == len(t.vars) {
		t.vars = append(t.vars, new(Var))
	}
	v := t.vars[t.used]
	*v = Var{producer: t.count - 1}
	t.used++
	return v
}
