package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Algorithm is one way to carry out some operations.
type Algorithm struct {
	Name  string
	Kinds []Kind
	// Plan returns the plan of a kind in Kinds. root is 0 where the kind has
	// no root.
	Plan func(k Kind, ranks, root int) Plan
}

// Does reports whether the algorithm has a plan for k.
func (a Algorithm) Does(k Kind) bool { return slices.Contains(a.Kinds, k) }

// Algorithms lists all algorithms. To add one, add a file and a line.
func Algorithms() []Algorithm {
	return []Algorithm{
		{"naive", Kinds(), Naive},
		{"ring", []Kind{AllReduce, Broadcast, AllGather, ReduceScatter}, Ring},
		{"pairwise", []Kind{AllGather, AllToAll}, Pairwise},
	}
}

// Lookup returns the algorithm of that name.
func Lookup(name string) (Algorithm, error) {
	var known []string
	for _, a := range Algorithms() {
		if a.Name == name {
			return a, nil
		}
		known = append(known, a.Name)
	}
	return Algorithm{}, fmt.Errorf("unknown algorithm %q (known: auto %s)", name, strings.Join(known, " "))
}
