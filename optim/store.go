package optim

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
)

// store holds an optimizer's state: for each name one tensor per segment. All
// tensors of a name share one allocation, in which each starts on a multiple of
// device.NormBlock elements.
type store struct {
	dev      device.Device
	kernels  device.Kernels
	lazy     bool // see Config.Lazy
	names    []string
	segments []Segment // without gradients
	groups   []Group
	tensors  [][]device.Buf // by name, then by segment
}

func newStore(dev device.Device, segments []Segment, c Config, names ...string) (store, error) {
	s := store{dev: dev, kernels: dev.Kernels(), lazy: c.Lazy, names: names, tensors: make([][]device.Buf, len(names))}
	starts, total := make([]int, len(segments)), 0
	for i, seg := range segments {
		if err := seg.check(); err != nil {
			return store{}, err
		}
		starts[i] = total
		total += (seg.Hi - seg.Lo + device.NormBlock - 1) / device.NormBlock * device.NormBlock
		seg.Grad = device.Buf{}
		s.segments = append(s.segments, seg)
		s.groups = append(s.groups, c.Group(seg.Param))
	}
	for n, name := range names {
		all, err := dev.Alloc(device.F32, total)
		if err != nil {
			return store{}, fmt.Errorf("optim: memory for %s: %w", name, err)
		}
		for i, seg := range segments {
			s.tensors[n] = append(s.tensors[n], all.Slice(starts[i], starts[i]+seg.Hi-seg.Lo))
		}
	}
	return s, nil
}

func (s Segment) check() error {
	n := s.Param.Len()
	if s.Lo < 0 || s.Lo >= s.Hi || s.Hi > n {
		return fmt.Errorf("optim: [%d, %d) is no segment of %s, which has %d elements", s.Lo, s.Hi, s.Param.Name, n)
	}
	if s.Lo%device.NormBlock != 0 || s.Hi != n && s.Hi%device.NormBlock != 0 {
		return fmt.Errorf("optim: segment [%d, %d) of %s is not cut on multiples of %d", s.Lo, s.Hi, s.Param.Name, device.NormBlock)
	}
	return nil
}

// State visits the tensors segment by segment, names in order.
func (s *store) State(visit func(name string, s Segment, t device.Buf) error) error {
	for i, seg := range s.segments {
		for n, name := range s.names {
			if err := visit(name, seg, s.tensors[n][i]); err != nil {
				return fmt.Errorf("optim: %s of %s[%d:%d]: %w", name, seg.Param.Name, seg.Lo, seg.Hi, err)
			}
		}
	}
	return nil
}

// mustHold panics unless segments are those of Init.
func (s *store) mustHold(segments []Segment) {
	if len(segments) != len(s.segments) {
		panic(fmt.Sprintf("optim: Update with %d segments, Init had %d", len(segments), len(s.segments)))
	}
	for i := range segments {
		a, b := &segments[i], &s.segments[i]
		if a.Param != b.Param || a.Lo != b.Lo || a.Hi != b.Hi {
			panic(fmt.Sprintf("optim: segment %d of Update is %s[%d:%d], Init had %s[%d:%d]",
				i, a.Param.Name, a.Lo, a.Hi, b.Param.Name, b.Lo, b.Hi))
		}
	}
}
