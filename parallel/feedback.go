package parallel

import "github.com/gradfusion/gradfusion/wire"

// feedback is what a rank keeps of a bucket between steps: what its encodings
// have lost so far. It is a collective.Codec. Each step a rank encodes every
// element once, as its contribution to an owner's sum or as the owner of the sum,
// and adds there what it kept of the element. So one number an element is enough
// for both encodings, and what is owed is owed once.
type feedback struct {
	format wire.Format
	kept   []float32
	scale  float64 // by which the losses were multiplied that it comes from; 0: nothing did
	base   uint64  // of the seeds

	// Of top-k with momentum correction (Lin et al. 2018): the rank's own
	// momentum; kept adds up its steps until they are sent.
	velocity []float32
	momentum float32
	nesterov bool

	// The factors of PowerSGD, and what its calls carry.
	lowRank *lowRankBucket

	// Of state from a checkpoint: which elements this rank has encoded since.
	// Where only some ranks encode, the rest has to be handed to them once.
	restored bool
	encoded  []bool
}

// newFeedback keeps what it does in memory, half of which is for velocity where there
// is one.
func newFeedback(memory []float32, withVelocity bool) *feedback {
	if !withVelocity {
		return &feedback{kept: memory}
	}
	n := len(memory) / 2
	return &feedback{kept: memory[:n:n], velocity: memory[n:]}
}

// rescale makes what is kept comparable with gradients of another loss scale.
// Scales are powers of two unless somebody fixes another one, so this is exact.
func (f *feedback) rescale(scale float64) {
	if f.scale == 0 || f.scale == scale {
		f.scale = scale
		return
	}
	by := float32(scale / f.scale)
	f.scale = scale
	for i := range f.kept {
		f.kept[i] *= by
	}
	for i := range f.velocity {
		f.velocity[i] *= by
	}
}

// Name implements collective.Codec.
func (f *feedback) Name() string { return f.format.Name() }

// EncodedLen implements collective.Codec.
func (f *feedback) EncodedLen(n int) int { return f.format.EncodedLen(n) }

// Begin implements collective.Codec: own becomes all that this rank owes.
func (f *feedback) Begin(own []float32, at int) {
	f.note(at, len(own))
	f.add(own, at, own)
}

// Encode implements collective.Codec.
func (f *feedback) Encode(dst []byte, contribution []float32, at int) {
	f.note(at, len(contribution))
	f.runs(dst, len(contribution), func(dst []byte, lo, hi int) {
		f.add(contribution[lo:hi], at+lo, nil)
		f.encode(dst, at+lo, hi-lo, 0)
	})
}

// EncodeSum implements collective.Codec.
func (f *feedback) EncodeSum(dst []byte, sum []float32, at int) {
	f.runs(dst, len(sum), func(dst []byte, lo, hi int) {
		copy(f.kept[at+lo:], sum[lo:hi])
		f.encode(dst, at+lo, hi-lo, 1)
	})
}

// runs calls visit for what the format encodes apart, so that what one step of an
// encoding has touched is in the cache for the next; for all n elements at once
// where the seed is that of the whole.
func (f *feedback) runs(dst []byte, n int, visit func(dst []byte, lo, hi int)) {
	if top, ok := f.format.(*wire.TopK); ok {
		top.Runs(dst, n, visit)
		return
	}
	visit(dst, 0, n)
}

// encode sends what is kept of n elements, and keeps what was lost.
func (f *feedback) encode(dst []byte, at, n int, stage uint64) {
	f.format.EncodeKeeping(dst, f.kept[at:at+n], wire.Seed(f.base, uint64(at), stage))
	if top, ok := f.format.(*wire.TopK); ok && f.velocity != nil {
		top.ClearSent(dst, f.velocity[at:at+n]) // its momentum is spent
	}
}

// Decode implements collective.Codec.
func (f *feedback) Decode(dst []float32, src []byte) { f.format.Decode(dst, src) }

// DecodeAdd implements collective.Codec.
func (f *feedback) DecodeAdd(dst []float32, src []byte) { f.format.DecodeAdd(dst, src) }

// addBlock is how many elements of three vectors fit the first-level cache.
const addBlock = 1 << 11

// add adds a step's gradient to what is kept, and copies that to all, which may
// be the gradient, unless it is nil.
func (f *feedback) add(gradient []float32, at int, all []float32) {
	for lo := 0; lo < len(gradient); lo += addBlock {
		hi := min(lo+addBlock, len(gradient))
		kept := f.kept[at+lo : at+hi]
		if f.velocity == nil {
			wire.Add(kept, gradient[lo:hi])
		} else {
			velocity := f.velocity[at+lo : at+hi]
			wire.Momentum(kept, velocity, gradient[lo:hi], f.momentum, f.nesterov)
			if !wire.Finite(velocity) { // one bad step must not last
				dropNotFinite(velocity)
			}
		}
		if all != nil {
			copy(all[lo:hi], kept)
		}
	}
}

// dense takes part in a step in which nothing is encoded: the gradient becomes
// the step of the momentum that top-k replaces, with all that is owed.
func (f *feedback) dense(gradient []float32) {
	f.add(gradient, 0, gradient)
	clear(f.kept)
}

// begin prepares a call. some is true where ranks encode a part of the vector
// only.
func (f *feedback) begin(gradient []float32, some bool) {
	switch {
	case !f.restored || !some:
	case f.encoded == nil:
		f.encoded = make([]bool, len(f.kept))
	default: // the second step since
		for i, done := range f.encoded {
			if !done {
				gradient[i] += f.kept[i]
				f.kept[i] = 0
			}
		}
		f.restored, f.encoded = false, nil
	}
}

func (f *feedback) note(at, n int) {
	if f.encoded == nil {
		return
	}
	for i := range f.encoded[at : at+n] {
		f.encoded[at+i] = true
	}
}
