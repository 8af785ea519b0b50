package parallel

import (
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// direction is which way something goes between two stages.
type direction uint8

const (
	down direction = iota // values, to the next stage
	up                    // gradients, to the stage before
)

// spec is what travels between two stages for micro-batches of one size.
type spec struct {
	shapes []nn.Shape
	types  []device.Type
	needs  []bool // whether its gradient comes back
	known  bool   // the receiving rank knows it
}

type specKey struct {
	samples  int
	training bool
}

// parcel is the Vars of a micro-batch, or the gradients of those that need one,
// on their way from a stage to another.
type parcel struct {
	spec *spec
	bufs []device.Buf
	work *collective.Work // of the message; nil where there is none
	head *collective.Work // of the message's first bytes, where they are received by themselves
}

// boundary is the border between a stage and the next one, as a rank sees it
// that holds one of them, or both.
type boundary struct {
	local   bool // this rank holds both
	peer    int  // else the other's rank in the pipe
	near    bool // both are on one host
	specs   map[specKey]*spec
	parcels [2][]*parcel // by direction and micro-batch of the run
	leaving [2][]*parcel // being sent, oldest first
}

func (b *boundary) begin(micros int) {
	for d := range b.parcels {
		for len(b.parcels[d]) < micros {
			b.parcels[d] = append(b.parcels[d], nil)
		}
	}
}

// describeVars makes the spec of a stage's results.
func describeVars(vars []*nn.Var) *spec {
	s := &spec{}
	for _, v := range vars {
		s.shapes = append(s.shapes, v.Shape)
		s.types = append(s.types, v.Value.Type)
		s.needs = append(s.needs, v.NeedsGrad())
	}
	return s
}

// matches reports whether vars are what s says.
func (s *spec) matches(vars []*nn.Var) bool {
	if len(vars) != len(s.shapes) {
		return false
	}
	for i, v := range vars {
		if v.Shape != s.shapes[i] || v.Value.Type != s.types[i] || v.NeedsGrad() != s.needs[i] {
			return false
		}
	}
	return true
}

// A spec travels as maxTensors rows of numbers behind their count.
const (
	maxTensors = 16
	rowOfSpec  = 8
	specLen    = 1 + maxTensors*rowOfSpec

	mostElements = 1 << 31 // of a tensor
)

func (s *spec) encode() (device.Buf, error) {
	if len(s.shapes) > maxTensors {
		return device.Buf{}, fmt.Errorf("parallel: a stage gives %d values to the next one, at most %d can travel", len(s.shapes), maxTensors)
	}
	row := make([]int32, specLen)
	row[0] = int32(len(s.shapes))
	for i, shape := range s.shapes {
		at := row[1+i*rowOfSpec:]
		at[0], at[1], at[2] = int32(s.types[i]), int32(shape.Layout), int32(shape.Rank)
		if s.needs[i] {
			at[3] = 1
		}
		for k, d := range shape.Dims {
			at[4+k] = int32(d)
		}
	}
	return device.FromI32(row), nil
}

func decodeSpec(b device.Buf) (*spec, error) {
	row := b.I32()
	s := &spec{known: true}
	if row[0] < 0 || row[0] > maxTensors {
		return nil, fmt.Errorf("parallel: a stage announces %d values", row[0])
	}
	for i := range int(row[0]) {
		at := row[1+i*rowOfSpec:]
		if at[0] < 0 || at[0] > int32(device.U8) || at[1] < 0 || at[1] > int32(device.Blocked16) || at[2] < 0 || at[2] > 4 {
			return nil, fmt.Errorf("parallel: a stage announces type %d, layout %d and %d dimensions", at[0], at[1], at[2])
		}
		shape, elements := nn.Shape{Layout: device.Layout(at[1]), Rank: int(at[2])}, int64(1)
		for k := range shape.Dims {
			shape.Dims[k] = int(at[4+k])
			if elements *= max(int64(at[4+k]), 1); at[4+k] < 0 || elements > mostElements {
				return nil, fmt.Errorf("parallel: a stage announces the shape %v", at[4:8])
			}
		}
		s.shapes = append(s.shapes, shape)
		s.types = append(s.types, device.Type(at[0]))
		s.needs = append(s.needs, at[3] == 1)
	}
	return s, nil
}
