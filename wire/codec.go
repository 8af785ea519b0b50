package wire

import "github.com/gradfusion/gradfusion/wire/pack"

// Codec is a Format as collective.Call takes it, without feedback: what is lost
// is lost. It is for one call at a time.
type Codec struct {
	Format
	Base uint64 // of the seeds; another for each call and rank
}

// Begin does nothing: the own contribution is what it is.
func (c *Codec) Begin([]float32, int) {}

// Encode encodes a contribution that starts at element at of the whole vector.
func (c *Codec) Encode(dst []byte, src []float32, at int) {
	c.Format.Encode(dst, src, Seed(c.Base, uint64(at), 0))
}

// EncodeSum encodes a sum that starts at element at of the whole vector.
func (c *Codec) EncodeSum(dst []byte, sum []float32, at int) {
	c.Format.Encode(dst, sum, Seed(c.Base, uint64(at), 1))
}

// Packs is how what it encodes can be packed: floats of 16 bits.
func (c *Codec) Packs() (pack.Kind, bool) {
	h, ok := c.Format.(*Half)
	if ok && h.bfloat {
		return pack.BF16, true
	}
	return pack.F16, ok
}
