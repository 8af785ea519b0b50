package device

import "sync"

// Widened lets kernels that compute in float32 take tensors of F16 and BF16
// wherever Kernels allows them: whole tensors are widened into scratch, and
// results rounded from there. It is what every device may start from, and what
// kernels that convert on their way have to agree with to the bit. Safe for
// concurrent use, as the kernels are.
type Widened struct {
	Kernels // of float32
	alloc   func(Type, int) (Buf, error)

	mu   sync.Mutex
	free []*widening
}

// NewWidened returns kernels over k whose scratch comes from alloc, as
// Device.Alloc. The scratch stays for later calls.
func NewWidened(k Kernels, alloc func(Type, int) (Buf, error)) *Widened {
	return &Widened{Kernels: k, alloc: alloc}
}

// IsHalf reports whether any of the buffers is of a 16-bit floating-point type.
func IsHalf(buffers ...Buf) bool {
	for i := range buffers {
		if t := buffers[i].Type; t == F16 || t == BF16 {
			return true
		}
	}
	return false
}

// widening is the scratch of one call.
type widening struct {
	owner *Widened
	bufs  []Buf
	used  int
	out   [4]struct{ to, from Buf } // to be rounded at the end
	outs  int
}

func (w *Widened) begin() *widening {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.free); n > 0 {
		s := w.free[n-1]
		w.free = w.free[:n-1]
		return s
	}
	return &widening{owner: w}
}

// end rounds what was computed and gives the scratch back.
func (s *widening) end() {
	for _, o := range s.out[:s.outs] {
		s.owner.Cast(o.to, o.from)
	}
	s.used, s.outs = 0, 0
	w := s.owner
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free = append(w.free, s)
}

func (s *widening) scratch(n int) Buf {
	if s.used == len(s.bufs) {
		s.bufs = append(s.bufs, Buf{})
	}
	b := &s.bufs[s.used]
	s.used++
	if b.Len < n {
		wide, err := s.owner.alloc(F32, n)
		if err != nil {
			panic(&MemoryError{F32, n, err})
		}
		*b = wide
	}
	return b.Slice(0, n)
}

// in returns b as float32.
func (s *widening) in(b Buf) Buf {
	if !IsHalf(b) {
		return b
	}
	wide := s.scratch(b.Len)
	s.owner.Cast(wide, b)
	return wide
}

// to returns where to compute b, which keeps what it holds when that is added to.
func (s *widening) to(b Buf, accumulate bool) Buf {
	if !IsHalf(b) {
		return b
	}
	wide := s.scratch(b.Len)
	if accumulate {
		s.owner.Cast(wide, b)
	}
	s.out[s.outs].to, s.out[s.outs].from = b, wide
	s.outs++
	return wide
}

// Fill is the kernel for any floating-point type.
func (w *Widened) Fill(dst Buf, v float32) {
	s := w.begin()
	w.Kernels.Fill(s.to(dst, false), v)
	s.end()
}

// Add is the kernel for any types.
func (w *Widened) Add(dst, a, b Buf) {
	s := w.begin()
	w.Kernels.Add(s.to(dst, false), s.in(a), s.in(b))
	s.end()
}

// Scale is the kernel for any types.
func (w *Widened) Scale(dst, a Buf, factor float32) {
	s := w.begin()
	w.Kernels.Scale(s.to(dst, false), s.in(a), factor)
	s.end()
}

// Activate is the kernel for any types.
func (w *Widened) Activate(f Activation, y, x Buf) {
	s := w.begin()
	w.Kernels.Activate(f, s.to(y, false), s.in(x))
	s.end()
}

// ActivateBackward is the kernel for any types.
func (w *Widened) ActivateBackward(f Activation, dx, dy, saved Buf, accumulate bool) {
	s := w.begin()
	w.Kernels.ActivateBackward(f, s.to(dx, accumulate), s.in(dy), s.in(saved), accumulate)
	s.end()
}

// Dropout is the kernel for any types.
func (w *Widened) Dropout(y, x Buf, p float32, seed uint64) {
	s := w.begin()
	w.Kernels.Dropout(s.to(y, false), s.in(x), p, seed)
	s.end()
}

// MatMul is the kernel for any types.
func (w *Widened) MatMul(d MatMul, c, a, b, bias Buf) {
	s := w.begin()
	_, _, ldc := d.Strides()
	// What lies between the rows of c stays as it is.
	w.Kernels.MatMul(d, s.to(c, d.Accumulate || ldc != d.N), s.in(a), s.in(b), bias)
	s.end()
}

// SumRows is the kernel for any types.
func (w *Widened) SumRows(out, a Buf, rows, cols int, accumulate bool) {
	s := w.begin()
	w.Kernels.SumRows(out, s.in(a), rows, cols, accumulate)
	s.end()
}

// CrossEntropyForward is the kernel for logits of any type.
func (w *Widened) CrossEntropyForward(d CrossEntropy, loss, correct, probs, logits, labels Buf) {
	s := w.begin()
	w.Kernels.CrossEntropyForward(d, loss, correct, probs, s.in(logits), labels)
	s.end()
}

// CrossEntropyBackward is the kernel for dlogits of any type.
func (w *Widened) CrossEntropyBackward(d CrossEntropy, dlogits, probs, labels Buf, seed float32) {
	s := w.begin()
	w.Kernels.CrossEntropyBackward(d, s.to(dlogits, false), probs, labels, seed)
	s.end()
}

// SquaredErrorForward is the kernel for any types.
func (w *Widened) SquaredErrorForward(loss, x, t Buf) {
	s := w.begin()
	w.Kernels.SquaredErrorForward(loss, s.in(x), s.in(t))
	s.end()
}

// SquaredErrorBackward is the kernel for any types.
func (w *Widened) SquaredErrorBackward(dx, x, t Buf, seed float32) {
	s := w.begin()
	w.Kernels.SquaredErrorBackward(s.to(dx, false), s.in(x), s.in(t), seed)
	s.end()
}
