package collective

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// shape is what a program depends on, beside the Group.
type shape struct {
	kind                plan.Kind
	op                  Op
	typ                 device.Type
	root, in, out       int
	inBounds, outBounds uint64
	algorithm           string
	codec               string
	acrossHosts         bool
}

func shapeOf(c *Call) shape {
	s := shape{
		kind: c.Kind, op: c.Op, typ: c.typ(), root: c.Root, in: c.In.Len, out: c.Out.Len,
		inBounds: fingerprint(c.InBounds), outBounds: fingerprint(c.OutBounds), algorithm: c.Algorithm,
	}
	if c.Codec != nil {
		s.codec, s.acrossHosts = c.Codec.Name(), c.AcrossHosts
	}
	return s
}

// normalise turns a call whose output is its input into one in place.
func (c *Call) normalise() {
	a, b := c.In.Bytes(), c.Out.Bytes()
	whole := c.Kind == plan.AllReduce || c.Kind == plan.Reduce || c.Kind == plan.Broadcast
	if whole && len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] {
		c.Out = device.Buf{Type: c.Out.Type}
	}
}

func (c *Call) typ() device.Type {
	switch {
	case c.In.Len > 0:
		return c.In.Type
	case c.Out.Len > 0:
		return c.Out.Type
	}
	return max(c.In.Type, c.Out.Type) // an empty part still has its type
}

// fingerprint is 0 for no bounds.
func fingerprint(bounds []int) uint64 {
	if bounds == nil {
		return 0
	}
	h := uint64(14695981039346656037)
	for _, b := range bounds {
		h = (h ^ uint64(b)) * 1099511628211
		h ^= h >> 29
	}
	return h | 1
}

// algorithm returns the plan's algorithm for a call, by the call's name for it,
// the group's selection, or by cost.
func (g *Group) algorithm(c *Call, bytes int) (plan.Algorithm, error) {
	n := len(g.ranks)
	// Parts of several sizes cannot be relayed.
	uneven := c.Kind == plan.AllToAll && (c.InBounds != nil || c.OutBounds != nil || c.In.Len%n != 0)
	relays := func(a plan.Algorithm) bool { return uneven && slices.Contains(a.Relays, c.Kind) }
	if name := c.Algorithm; name != "" && name != "auto" {
		a, err := plan.Lookup(name)
		switch {
		case err != nil:
		case !a.Does(c.Kind):
			err = fmt.Errorf("algorithm %s has no %v", name, c.Kind)
		case relays(a):
			err = fmt.Errorf("algorithm %s has no %v of parts of several sizes", name, c.Kind)
		}
		return a, err
	}
	if g.selectionError != nil {
		return plan.Algorithm{}, g.selectionError
	}
	if g.paces(c) {
		return plan.Lookup(pacedName)
	}
	a := g.selection.Choose(c.Kind, g.world(), bytes, g.config.Links)
	if relays(a) {
		return plan.Lookup("pairwise")
	}
	return a, nil
}

// world describes the group to plans.
func (g *Group) world() plan.World {
	return plan.World{Ranks: len(g.ranks), Hosts: g.hosts, Processes: g.processes}
}

// text describes a call for errors.
func (g *Group) text(c Call) string {
	if c.Kind == pointToPoint {
		return "exchange"
	}
	return g.headerOf(&c).String()
}

// headerOf is the header of a call without its algorithm and sequence number.
// count is what all ranks know alike.
func (g *Group) headerOf(c *Call) header {
	h := header{kind: c.Kind, typ: c.typ()}
	if c.Kind.Reduces() {
		h.op = c.Op
	}
	if c.Kind.Rooted() {
		h.root = c.Root
	}
	switch c.Kind {
	case plan.AllReduce, plan.Reduce, plan.Broadcast, plan.AllGather:
		h.count = max(c.In.Len, c.Out.Len)
	case plan.ReduceScatter:
		h.count = c.In.Len
	case plan.AllToAll:
		if c.InBounds == nil && c.OutBounds == nil {
			h.count = c.In.Len
		}
	case plan.Barrier:
		h.typ = 0
	case allocation:
		h.count = c.alloc.n
	}
	if c.Kind != plan.AllToAll && c.InBounds != nil {
		h.count = c.InBounds[len(c.InBounds)-1]
		f := fnv.New32a()
		fmt.Fprint(f, c.InBounds)
		h.bounds = f.Sum32()
	}
	return h
}
