package nn

// Part says which part of a whole tensor a partner has: along dimension Dim the
// Runs, one after another, and all of the other dimensions.
type Part struct {
	Whole   []int // shape of the whole tensor
	Dim     int
	Runs    []Run // ascending, none empty
	Largest int   // what the partner with the most has along Dim
}

// Run is the half-open range [Lo, Hi).
type Run struct{ Lo, Hi int }

// Shape returns the shape of the part.
func (p *Part) Shape() []int {
	shape := append([]int(nil), p.Whole...)
	shape[p.Dim] = p.Width()
	return shape
}

// Width is what the part has along Dim.
func (p *Part) Width() int {
	n := 0
	for _, r := range p.Runs {
		n += r.Hi - r.Lo
	}
	return n
}

// Columns is what the whole tensor has along Dim.
func (p *Part) Columns() int { return p.Whole[p.Dim] }

// WholeLen returns the elements of the whole tensor.
func (p *Part) WholeLen() int { return product(p.Whole) }

// Take copies the part out of the whole tensor.
func (p *Part) Take(part, whole []float32) {
	p.each(func(at, from, n int) { copy(part[at:at+n], whole[from:from+n]) })
}

// Put copies the part into the whole tensor.
func (p *Part) Put(whole, part []float32) {
	p.each(func(at, from, n int) { copy(whole[from:from+n], part[at:at+n]) })
}

// each calls f for the stretches of the part, in order: n elements that are at
// at in the part and at from in the whole.
func (p *Part) each(f func(at, from, n int)) {
	outer, inner := product(p.Whole[:p.Dim]), product(p.Whole[p.Dim+1:])
	at := 0
	for o := range outer {
		for _, r := range p.Runs {
			n := (r.Hi - r.Lo) * inner
			f(at, (o*p.Columns()+r.Lo)*inner, n)
			at += n
		}
	}
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// WholeShape returns the shape of the tensor that p is, or is a part of.
func (p *Param) WholeShape() []int {
	if p.Part != nil {
		return p.Part.Whole
	}
	return p.Shape
}

// WholeLen returns the elements of the tensor that p is, or is a part of.
func (p *Param) WholeLen() int { return product(p.WholeShape()) }

// Space is how many elements the partner with the largest part of this tensor
// has: Len for a parameter that is not cut. Buckets that leave so much room for
// it have the same places on all partners, so that sums over other ranks are
// added up in the same order on all of them.
func (p *Param) Space() int {
	if p.Part == nil {
		return p.Len()
	}
	return p.Len() / p.Part.Width() * p.Part.Largest
}

// cutParam makes a parameter of the given whole shape, or the part of it that
// belongs to this partner.
func cutParam(part *Part, p Param, whole ...int) *Param {
	p.Shape = whole
	if part != nil {
		p.Part, p.Shape = part, part.Shape()
	}
	return &p
}
