package plan

import (
	"fmt"
	"strings"
)

// Kind is a collective operation.
type Kind uint8

// The operations. Send and receive are no plans: see collective.Comm.Exchange.
const (
	AllReduce Kind = iota
	Reduce
	Broadcast
	AllGather
	ReduceScatter
	Gather
	Scatter
	AllToAll
	Barrier
)

// Kinds lists all operations.
func Kinds() []Kind {
	return []Kind{AllReduce, Reduce, Broadcast, AllGather, ReduceScatter, Gather, Scatter, AllToAll, Barrier}
}

func (k Kind) String() string {
	switch k {
	case AllReduce:
		return "all-reduce"
	case Reduce:
		return "reduce"
	case Broadcast:
		return "broadcast"
	case AllGather:
		return "all-gather"
	case ReduceScatter:
		return "reduce-scatter"
	case Gather:
		return "gather"
	case Scatter:
		return "scatter"
	case AllToAll:
		return "all-to-all"
	case Barrier:
		return "barrier"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Reduces reports whether the operation combines values of several ranks.
func (k Kind) Reduces() bool { return k == AllReduce || k == Reduce || k == ReduceScatter }

// Rooted reports whether one rank plays a part of its own.
func (k Kind) Rooted() bool { return k == Reduce || k == Broadcast || k == Gather || k == Scatter }

// Parts reports whether each rank owns a run of the vector's chunks.
func (k Kind) Parts() bool {
	return k == AllGather || k == ReduceScatter || k == Gather || k == Scatter
}

// ParseKind reads an operation's name, with or without hyphens.
func ParseKind(name string) (Kind, error) {
	plain := func(s string) string { return strings.ReplaceAll(s, "-", "") }
	for _, k := range Kinds() {
		if plain(k.String()) == plain(name) {
			return k, nil
		}
	}
	var known []string
	for _, k := range Kinds() {
		known = append(known, k.String())
	}
	return 0, fmt.Errorf("unknown collective operation %q%s", name, hint(name, known))
}
