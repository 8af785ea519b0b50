package bench

import (
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// Operation is what is measured: one of plan's kinds, or SendReceive.
type Operation struct {
	Name string // as the command line has it
	// Kind is set unless the operation is SendReceive.
	Kind        plan.Kind
	SendReceive bool
}

// Operations lists all of them.
func Operations() []Operation {
	var all []Operation
	for _, k := range plan.Kinds() {
		all = append(all, Operation{Name: strings.ReplaceAll(k.String(), "-", ""), Kind: k})
	}
	return append(all, Operation{Name: "sendrecv", SendReceive: true})
}

// ParseOperation finds an operation by its name, with or without hyphens.
func ParseOperation(name string) (Operation, error) {
	var known []string
	for _, o := range Operations() {
		if o.Name == strings.ReplaceAll(strings.ToLower(name), "-", "") {
			return o, nil
		}
		known = append(known, o.Name)
	}
	return Operation{}, fmt.Errorf("unknown operation %q; known: %s", name, strings.Join(known, ", "))
}

// BusFactor is busbw / algbw: what the busiest rank must send, in vectors, for
// n ranks. It makes figures of different n comparable with the speed of a link.
func (o Operation) BusFactor(n int) float64 {
	share := float64(n-1) / float64(n)
	switch {
	case o.SendReceive:
		return 1
	case o.Kind == plan.AllReduce:
		return 2 * share
	case o.Kind == plan.Reduce, o.Kind == plan.Broadcast, o.Kind == plan.Barrier:
		return 1
	}
	return share
}

// title is the operation in words.
func (o Operation) title() string {
	if o.SendReceive {
		return "send-receive"
	}
	return o.Kind.String()
}

// sized reports whether the operation moves data.
func (o Operation) sized() bool { return o.SendReceive || o.Kind != plan.Barrier }

// fit is the number of elements that a vector of length n gets at most: all
// ranks' parts are equal in an all-to-all.
func (o Operation) fit(length, ranks int) int {
	if !o.SendReceive && o.Kind == plan.AllToAll {
		return length - length%ranks
	}
	return length
}

// Does reports whether an algorithm is one for this operation; "auto" always is.
func (o Operation) Does(algorithm string) bool {
	if algorithm == auto {
		return true
	}
	a, err := plan.Lookup(algorithm)
	return err == nil && !o.SendReceive && a.Does(o.Kind)
}

// auto leaves the choice of the algorithm to the group.
const auto = "auto"
