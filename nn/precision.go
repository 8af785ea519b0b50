package nn

import "github.com/gradfusion/gradfusion/device"

// Precision says which values of a pass have 16 bits. The zero value is float32
// throughout. Whatever the types, kernels compute in float32 and round once
// where they store; gradients of activations have the type of the activation,
// those of parameters are float32.
type Precision struct {
	// Type is F16 or BF16; F32, the zero value, means none.
	Type device.Type
	// Products limits it to the products: Linear, Conv2d and Attention read
	// inputs and weights of 16 bits and give 16 bits. Norms, embeddings and losses
	// give float32, and what only moves or maps elements keeps the type of its
	// input. Without it all activations have 16 bits, and so have weights and
	// tables while they are read; losses are float32 inside.
	Products bool
	// Norms rounds the scales and shifts of norms as well. Statistics are
	// float32 in any case.
	Norms bool
}

// none reports whether all is float32.
func (p Precision) none() bool { return p.Type == device.F32 }

// norms is the type of what norms and embeddings give.
func (p Precision) norms() device.Type {
	if p.Products {
		return device.F32
	}
	return p.Type
}

// passive is the type of what moves or maps elements of inputs.
func (p Precision) passive(inputs []*Var) device.Type {
	if !p.Products || p.none() {
		return p.Type
	}
	t := device.F32
	for _, v := range inputs {
		switch {
		case v == nil || v.param != nil:
		case device.IsHalf(v.Value):
			t = p.Type
		default:
			return device.F32
		}
	}
	return t
}

// gradType is the type of v's gradient, when v is no parameter.
func (v *Var) gradType() device.Type {
	if device.IsHalf(v.Value) {
		return v.Value.Type
	}
	return device.F32
}

// product makes the result of a product.
func (t *Tape) product(s Shape, inputs ...*Var) *Var {
	return t.output(t.Pass.Precision.Type, s, inputs)
}

// normal makes the result of a norm or an embedding.
func (t *Tape) normal(s Shape, inputs ...*Var) *Var {
	return t.output(t.Pass.Precision.norms(), s, inputs)
}

// operand returns x as a product reads it. Call it after Record: what it makes
// lives as long as the operation.
func (t *Tape) operand(x *Var) device.Buf {
	p := t.Pass.Precision
	if !p.Products || p.none() || device.IsHalf(x.Value) {
		return x.Value
	}
	b := t.Scratch(p.Type, x.Value.Len)
	t.kernels.Cast(b, x.Value)
	return b
}

// wide returns the value of a use as float32; see operand.
func (t *Tape) wide(v *Var) device.Buf {
	if !device.IsHalf(v.Value) {
		return v.Value
	}
	b := t.Scratch(device.F32, v.Value.Len)
	t.kernels.Cast(b, v.Value)
	return b
}

// copy copies src to dst, whatever their types.
func (t *Tape) copy(dst, src device.Buf) {
	if dst.Type != src.Type {
		t.kernels.Cast(dst, src)
		return
	}
	t.kernels.Copy(dst, src)
}

// rounded is a parameter's copy in 16 bits.
type rounded struct {
	buf device.Buf
	of  roundedFrom
}

// roundedFrom tells masters apart that were rounded: by what their owner said,
// or without a word by the pass.
type roundedFrom struct {
	version, step int
	training      bool
	tape          *Tape
	pass          int
}

// Changed says that the master has other values than before. Who calls it, as
// parallel.GradFusion does, calls it after every change; then all passes between
// two changes share one copy in 16 bits. Without it every pass rounds anew.
func (p *Param) Changed() { p.version++ }

// read puts the parameter on the tape as a product, a table or, with norm, a norm
// reads it.
func (p *Param) read(t *Tape, norm bool) *Var {
	v := p.Use(t)
	if q := t.Pass.Precision; !q.none() && (!norm || q.Norms) {
		v.Value = p.roundedFor(t, q.Type)
	}
	return v
}

func (p *Param) roundedFor(t *Tape, typ device.Type) device.Buf {
	from := roundedFrom{version: p.version, step: t.Pass.Step, training: t.Pass.Training}
	if p.version == 0 {
		from.tape, from.pass = t, t.passes
	}
	r := &p.half
	if r.buf.Type != typ || r.buf.Len != p.Len() {
		b, err := t.device.Alloc(typ, p.Len())
		if err != nil {
			panic(&UseError{Param: p.Name, Err: err})
		}
		*r = rounded{buf: b}
	} else if r.of == from {
		return r.buf
	}
	t.kernels.Cast(r.buf, p.Value)
	r.of = from
	return r.buf
}
