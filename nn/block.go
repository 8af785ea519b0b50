package nn

import (
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/observe"
)

// Block is the unit between two of which a pipeline may cut a model: it takes
// and gives Vars, in the order in which its neighbours agree. A model is a list
// of blocks.
type Block interface {
	// Name is unique in the model, such as "layer1.0".
	Name() string
	Forward(t *Tape, in []*Var) []*Var
	// Params lists the parameters in order of first use.
	Params() []*Param
	// State lists the buffers that belong to the model but are not trained.
	State() []State
}

// State is a named buffer that is saved with the model: the running mean or
// variance of a BatchNorm.
type State struct {
	Name    string
	Buf     device.Buf
	Running *Running // the statistics that the buffer is part of
}

// Layer is a function of one Var with parameters of its own.
type Layer interface {
	Forward(t *Tape, x *Var) *Var
	Params() []*Param
	State() []State
}

// Forward runs the blocks one after another. In evaluation it gives back the
// memory of what the blocks make as it goes: only what Forward returns may be
// read afterwards.
func Forward(t *Tape, blocks []Block, in ...*Var) []*Var {
	x, start := t.List(in...), t.Events.Now()
	for i, b := range blocks {
		t.marks = append(t.marks, mark{b.Name(), t.count})
		if t.Pass.Training && t.Pass.Recompute {
			x = t.checkpoint(b, x)
			start = t.span(observe.Forward, b.Name(), start)
			continue
		}
		vars, scratch := t.used, len(t.scratch)
		y := b.Forward(t, x)
		if i == 0 {
			x = nil // the caller's
		}
		if !t.Pass.Training {
			t.release(vars, scratch, x, y)
		}
		x = y
		start = t.span(observe.Forward, b.Name(), start)
	}
	t.marks = append(t.marks, mark{"loss", t.count})
	return x
}

// Params lists the distinct parameters of the blocks in order.
func Params(blocks []Block) []*Param {
	var out []*Param
	seen := map[*Param]bool{}
	for _, b := range blocks {
		for _, p := range b.Params() {
			if !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// States lists the distinct states of the blocks in order.
func States(blocks []Block) []State {
	var out []State
	seen := map[string]bool{}
	for _, b := range blocks {
		for _, s := range b.State() {
			if !seen[s.Name] {
				seen[s.Name] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// Only returns the one input of the block that takes no more.
func Only(block string, in []*Var) *Var {
	if len(in) != 1 {
		fail(block, "block", "%d inputs, want 1", len(in))
	}
	return in[0]
}

var (
	_ Block = (*Seq)(nil)

	_ Layer = (*Linear)(nil)
	_ Layer = (*Conv2d)(nil)
	_ Layer = (*BatchNorm2d)(nil)
	_ Layer = (*Pool2d)(nil)
	_ Layer = GlobalAvgPool{}
	_ Layer = Dropout{}
	_ Layer = Flatten{}
	_ Layer = ReLU{}
	_ Layer = Tanh{}
	_ Layer = Sigmoid{}
	_ Layer = GELU{}
	_ Layer = SiLU{}
	_ Layer = (*LayerNorm)(nil)
	_ Layer = (*Embedding)(nil)
	_ Layer = (*Positions)(nil)
	_ Layer = (*Attention)(nil)
)

// Seq is layers applied in turn, as one block.
type Seq struct {
	name   string
	layers []Layer
}

// NewSeq returns the block called name that applies layers to its first input
// and gives one output.
func NewSeq(name string, layers ...Layer) *Seq { return &Seq{name: name, layers: layers} }

// Name returns the block's name.
func (s *Seq) Name() string { return s.name }

// Forward applies the layers.
func (s *Seq) Forward(t *Tape, in []*Var) []*Var {
	x := Only(s.name, in)
	over := false // x may be written over
	for _, l := range s.layers {
		if f := activationOf(l); over && f != device.Identity {
			x, over = t.activate(f, x, true), false
			continue
		}
		x = l.Forward(t, x)
		over = writable(l)
	}
	return t.List(x)
}

// writable reports whether a layer's output is a new Var that its backward pass
// does not read.
func writable(l Layer) bool {
	switch l.(type) {
	case *Linear, *Conv2d:
		return true
	}
	return false
}

// Params lists the layers' parameters.
func (s *Seq) Params() []*Param {
	var out []*Param
	for _, l := range s.layers {
		out = append(out, l.Params()...)
	}
	return out
}

// State lists the layers' states.
func (s *Seq) State() []State {
	var out []State
	for _, l := range s.layers {
		out = append(out, l.State()...)
	}
	return out
}
