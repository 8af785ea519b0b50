package trainer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel"
)

// section is one kind of tensors, which rank 0 sees whole, of all stages, and one
// by one in the order of their names: nobody needs memory for more than one beside
// his own.
type section struct {
	prefix string
	layout []parallel.Named // of this rank: whole shapes, and a type in Buf
	// each visits what layout has, in that order; partners have their parts of it.
	each func(visit func(parallel.Named) error) error
	// others are what other stages have, on rank 0, once list has asked.
	others []announced
}

// announced is a tensor that another place of the column has.
type announced struct {
	parallel.Named
	elements int
	place    int
}

// sectionOf has tensors that lie in this rank's memory.
func (s *session) sectionOf(prefix string, tensors []parallel.Named) *section {
	tensors = s.firstCopies(tensors)
	slices.SortFunc(tensors, func(a, b parallel.Named) int { return cmp.Compare(a.Name, b.Name) })
	return &section{prefix: prefix, layout: s.wholeShapes(tensors), each: func(visit func(parallel.Named) error) error {
		for _, t := range tensors {
			if err := visit(t); err != nil {
				return err
			}
		}
		return nil
	}}
}

// firstCopies leaves out what an earlier stage has: tied parameters and what
// belongs to them.
func (s *session) firstCopies(tensors []parallel.Named) (out []parallel.Named) {
	seen := map[string]bool{}
	for _, t := range tensors {
		if seen[t.Name] || s.isLater(t.Name) {
			continue
		}
		seen[t.Name] = true
		out = append(out, t)
	}
	return out
}

func (s *session) isLater(name string) bool { return s.later[name] || s.later[paramOf(name)] }

// partOf tells what a tensor is a part of, by the parameter that it belongs to.
func partOf(parts map[string]*nn.Part, t parallel.Named) *nn.Part {
	if part, ok := parts[t.Name]; ok {
		return part
	}
	return parts[paramOf(t.Name)]
}

// wholeShapes gives tensors the shapes that they have when partners' parts are
// together.
func (s *session) wholeShapes(tensors []parallel.Named) []parallel.Named {
	if s.partners == nil {
		return tensors
	}
	parts, out := s.tensorParts(), slices.Clone(tensors)
	for i, t := range out {
		switch part := partOf(parts, t); {
		case part == nil:
		case slices.Equal(t.Shape, part.Shape()):
			out[i].Shape = part.Whole
		default:
			out[i].Shape = []int{part.WholeLen()}
		}
	}
	return out
}

// list finds out on rank 0 what other stages have. It is collective over the
// first column.
func (s *session) list(ctx context.Context, c *section) error {
	if !s.isCut() || s.mesh.At.Data > 0 || s.mesh.At.Tensor > 0 {
		return nil
	}
	var own strings.Builder
	for _, t := range c.layout {
		fmt.Fprintf(&own, "%d %s %s\n", t.Buf.Type, dims(t.Shape), t.Name)
	}
	lists, err := collective.GatherBytes(ctx, s.mesh.Column, []byte(own.String()), "names of the stages' tensors")
	if err != nil {
		return fmt.Errorf("asking the stages for their tensors: %w", err)
	}
	if s.mesh.Column.Rank() > 0 {
		return nil
	}
	for place := 1; place < len(lists); place++ {
		for line := range strings.Lines(string(lists[place])) {
			t, n, err := parseAnnouncement(strings.TrimSuffix(line, "\n"))
			if err != nil {
				return fmt.Errorf("stage rank %d announces %q: %w", place, line, err)
			}
			c.others = append(c.others, announced{t, n, place})
		}
	}
	slices.SortStableFunc(c.others, func(a, b announced) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// visit calls f for the tensors of a listed section, without its prefix, in the
// order of their names: on all ranks, or on rank 0 alone if the model is cut in
// stages. What f gets is valid until it returns. It is collective where the model
// or the optimizer is cut.
func (s *session) visit(ctx context.Context, c *section, f func(parallel.Named) error) error {
	switch {
	case !s.isCut():
		return s.eachWhole(ctx, c, f)
	case s.mesh.At.Data > 0 || s.mesh.At.Tensor > 0:
		return s.eachWhole(ctx, c, func(parallel.Named) error { return nil })
	case s.mesh.Column.Rank() > 0:
		return s.eachWhole(ctx, c, func(t parallel.Named) error {
			if t.Buf.Len == 0 {
				return nil
			}
			return s.pass(ctx, collective.PointToPoint{Peer: 0, Buf: t.Buf})
		})
	}
	most, others := 0, c.others
	for _, o := range others {
		most = max(most, o.elements*o.Buf.Type.Size())
	}
	room := device.FromF64(make([]float64, (most+7)/8)).Bytes()
	take := func(until func(announced) bool) error {
		for len(others) > 0 && until(others[0]) {
			o := others[0]
			others = others[1:]
			if o.Buf = device.FromBytes(o.Buf.Type, room[:o.elements*o.Buf.Type.Size()]); o.elements > 0 {
				if err := s.pass(ctx, collective.PointToPoint{Peer: o.place, Recv: true, Buf: o.Buf}); err != nil {
					return err
				}
			}
			if err := f(o.Named); err != nil {
				return err
			}
		}
		return nil
	}
	err := s.eachWhole(ctx, c, func(t parallel.Named) error {
		if err := take(func(o announced) bool { return o.Name < t.Name }); err != nil {
			return err
		}
		return f(t)
	})
	if err != nil {
		return err
	}
	return take(func(announced) bool { return true })
}

// pass sends or receives a tensor in the column.
func (s *session) pass(ctx context.Context, p collective.PointToPoint) error {
	if err := s.mesh.Column.Exchange(ctx, []collective.PointToPoint{p}).Wait(ctx); err != nil {
		return fmt.Errorf("gathering the tensors of the stages: %w", err)
	}
	return nil
}

// eachWhole visits this rank's tensors, put together where partners have parts of
// them.
func (s *session) eachWhole(ctx context.Context, c *section, f func(parallel.Named) error) error {
	if s.partners == nil {
		return c.each(f)
	}
	parts := s.tensorParts()
	return c.each(func(t parallel.Named) error {
		whole, err := s.partners.Whole(ctx, []parallel.Named{t}, func(t parallel.Named) *nn.Part { return partOf(parts, t) })
		if err != nil {
			return err
		}
		return f(whole[0])
	})
}
