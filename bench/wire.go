package bench

import (
	"math"
	"slices"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/wire"
)

// variant is a way to carry an operation out.
type variant struct{ algorithm, wire string }

// variants lists the algorithms, then the wire formats, that an operation has
// for a type. Where there are formats, "auto" alone is what f32 stands for.
func (r *runner) variants(op Operation, t device.Type) (all []variant) {
	for _, name := range r.Algorithms {
		if op.Does(name) {
			all = append(all, variant{algorithm: name})
		}
	}
	encodes := !op.SendReceive && op.Kind == plan.AllReduce && t == device.F32
	if encodes && len(r.Wires) > 0 && len(r.Algorithms) == 1 && r.Algorithms[0] == auto {
		all = nil
	}
	for _, name := range r.Wires {
		switch {
		case name == "f32":
			if v := (variant{algorithm: auto}); !slices.Contains(all, v) {
				all = append(all, v)
			}
		case encodes:
			all = append(all, variant{wire: name})
		}
	}
	return all
}

// encoding is what a trial whose values are encoded has beside the others:
// formats take longer for some values than for others, so it is timed on numbers
// like gradients.
type encoding struct {
	codec *wire.Codec
}

// encode gives a trial of F32 a wire format.
func (t *trial) encode(name string) error {
	format, err := wire.New(wire.Config{Name: name})
	if err != nil {
		return err
	}
	t.encoding = &encoding{codec: &wire.Codec{Format: format}}
	t.call.Codec = t.encoding.codec
	t.draw()
	return nil
}

// draw gives the timed calls of a trial of floats numbers like gradients, which are
// put back before each; those of other types keep their zeros.
func (t *trial) draw() {
	var narrow func(float32) uint16
	switch t.memory.Type {
	case device.F32:
	case device.F16:
		narrow = device.F32ToF16
	case device.BF16:
		narrow = device.F32ToBF16
	default:
		return
	}
	t.source = device.FromBytes(t.memory.Type, make([]byte, t.memory.Size()))
	for i := range t.source.Len {
		x := uint32(i)*2654435761 + uint32(t.rank)*2246822519
		x = (x ^ x>>15) * 2246822519
		x ^= x >> 13
		// The sum of four numbers of 8 bits has nearly a bell's shape.
		v := float32(int(x&0xff)+int(x>>8&0xff)+int(x>>16&0xff)+int(x>>24)-510) / 1024
		if narrow == nil {
			t.source.F32()[i] = v
		} else {
			t.source.U16()[i] = narrow(v)
		}
	}
}

// renews reports whether timed calls begin with numbers that are put back.
func (t *trial) renews() bool { return t.source.Len > 0 }

// renew prepares a timed call.
func (t *trial) renew() {
	copy(t.memory.Bytes(), t.source.Bytes())
	if t.encoding != nil {
		t.encoding.codec.Base++
	}
}

// near compares encoded sums of the pattern with the exact ones. The largest
// contribution is mostValue and the largest sum mostResult, so blocks of integers
// are wrong by a level of each of these at most; 16-bit floats hold them exactly;
// and top-k leaves out some or all of a sum.
func (t *trial) near() bool {
	levels := map[string]float64{"int8": 127, "int4": 7}[t.encoding.codec.Name()]
	bound := 0.0
	if levels > 0 {
		bound = (mostValue*float64(t.pattern.ranks-1) + mostResult) * 1.01 / levels
	}
	_, sparse := t.encoding.codec.Format.(*wire.TopK)
	for i, x := range t.memory.F32() {
		sum := float64(t.pattern.sum(i))
		if sparse && (x < 0 || float64(x) > sum) || !sparse && !(math.Abs(float64(x)-sum) <= bound) {
			return false
		}
	}
	return true
}
