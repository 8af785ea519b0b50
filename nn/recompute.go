package nn

import "slices"

// recomputeOp is a block of which the forward pass kept the inputs and outputs
// only. The backward pass runs it once more, with the same seeds, and then
// backward. Chen et al. 2016.
type recomputeOp struct {
	block Block
	inner *Tape
	in    []*Var
	roots []*Var // by output: the Var that has its memory and gradient; nil where that is another's
	again bool   // the block has been run a second time
}

// replay is how a tape runs one block of an outer tape.
type replay struct {
	outer *Tape
	again bool     // it is the second time
	seeds []uint64 // that were drawn the first time
	uses  []Use    // of parameters, likewise
	seed  int      // the next of seeds, the second time
	use   int      // the next of uses, likewise
}

// checkpoint runs a block and forgets what it made, but for its outputs.
func (t *Tape) checkpoint(b Block, in []*Var) []*Var {
	op := Record[recomputeOp](t)
	op.block, op.in, op.inner = b, in, t.innerTape()
	r := &op.inner.replay
	*r = replay{outer: t, seeds: r.seeds[:0], uses: r.uses[:0]}
	made := op.run(t)
	op.roots = t.List(made...)
	out := t.List(made...)
	for i := range made {
		out[i], op.roots[i] = t.adopt(op, made, i)
	}
	op.inner.Begin(t.Pass)
	return out
}

// innerTape returns the tape of the block that is run now. Each block has its
// own, so that its records are of the same types in every pass; all share the
// outer tape's memory.
func (t *Tape) innerTape() *Tape {
	if t.inners == len(t.inner) {
		t.inner = append(t.inner, &Tape{device: t.device, kernels: t.kernels, arena: t.arena})
	}
	t.inners++
	return t.inner[t.inners-1]
}

// run runs the block on its inner tape. Its inputs there are views of those
// here, so that gradients go to these directly.
func (op *recomputeOp) run(t *Tape) []*Var {
	op.inner.Begin(t.Pass)
	in := op.inner.List(op.in...)
	for i, x := range in {
		in[i] = op.inner.viewAs(x, x.Shape)
	}
	return op.block.Forward(op.inner, in)
}

// adopt takes over the memory of output i: it returns the output on t, and the
// Var that owns the memory unless that is an input's or an earlier output's.
func (t *Tape) adopt(op *recomputeOp, made []*Var, i int) (out, owner *Var) {
	root := made[i].root()
	if !slices.Contains(op.inner.vars[:op.inner.used], root) {
		return t.viewAs(root, made[i].Shape), nil
	}
	for k := range i {
		if made[k].root() == root {
			return t.viewAs(op.roots[k], made[i].Shape), nil
		}
	}
	owner = t.newVar()
	owner.Shape, owner.Value, owner.needs, owner.owned, owner.score = root.Shape, root.Value, root.needs, root.owned, root.score
	owner.partners, owner.part = root.partners, root.part
	root.owned = false
	if made[i] != root {
		return t.viewAs(owner, made[i].Shape), owner
	}
	return owner, owner
}

// BackwardWeight is called alone, or first, by a pass that runs both halves of
// each operation at once; then the block does so too.
func (op *recomputeOp) BackwardWeight(t *Tape) {
	if op.again {
		op.inner.BackwardWeight()
	} else if op.recompute(t, true) {
		op.inner.Backward()
	}
}

// BackwardInput does nothing after a BackwardWeight that has done it all.
func (op *recomputeOp) BackwardInput(t *Tape) {
	if !op.again && op.recompute(t, false) {
		op.inner.BackwardInput()
	}
}

// recompute runs the block again and seeds its outputs, unless no gradient
// flows into any. The outputs that were kept are freed when all that comes after
// the block has run both halves.
func (op *recomputeOp) recompute(t *Tape, free bool) bool {
	op.again = true
	if !slices.ContainsFunc(op.roots, func(v *Var) bool { return v != nil && v.hasGrad }) {
		return false
	}
	for _, v := range op.roots {
		if free && v != nil && v.owned {
			t.arena.Put(v.Value)
			v.owned = false
		}
	}
	r := &op.inner.replay
	r.again, r.seed, r.use = true, 0, 0
	for i, made := range op.run(t) {
		if v := op.roots[i]; v != nil {
			root := made.root()
			root.grad, root.hasGrad, root.score.seed = v.grad, v.hasGrad, v.score.seed
			v.hasGrad = false
		}
	}
	return true
}

// draw takes a seed from the outer tape, or again what that gave the first time.
func (r *replay) draw(name string) uint64 {
	if !r.again {
		r.seeds = append(r.seeds, r.outer.Seed(name))
		return r.seeds[len(r.seeds)-1]
	}
	if r.seed == len(r.seeds) {
		fail(name, "recompute", "the block draws more random numbers than it did at first")
	}
	r.seed++
	return r.seeds[r.seed-1]
}

// count is Tape.use of an inner tape.
func (r *replay) count(p *Param) int {
	if !r.again {
		r.uses = append(r.uses, Use{p, r.outer.use(p)})
		return r.uses[len(r.uses)-1].Index
	}
	if r.use == len(r.uses) || r.uses[r.use].Param != p {
		fail(p.Name, "recompute", "the block uses its parameters in another order than it did at first")
	}
	r.use++
	return r.uses[r.use-1].Index
}

// repeats reports whether what runs on t has been run before in this pass.
func (t *Tape) repeats() bool {
	return t.replay.outer != nil && (t.replay.again || t.replay.outer.repeats())
}
