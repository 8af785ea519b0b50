package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// auto is the name that stands for Choose.
const auto = "auto"

// Selection says which algorithm runs an operation, by its size: what a
// configuration overrides Choose with. The zero value leaves all to Choose.
type Selection struct{ rules []rule }

// rule is a kind's ladder of algorithms by size, or that of all kinds.
type rule struct {
	all    bool
	kind   Kind
	ladder []rung
}

// rung is an algorithm for vectors of up to upTo bytes. Its name may be auto.
type rung struct {
	algorithm Algorithm
	upTo      int
}

// ParseSelection reads a selection:
//
//	ring                                   always, where ring has the operation
//	tree:64KiB,ring                        up to 64 KiB tree, beyond ring
//	allreduce=tree:64KiB,ring;broadcast=tree/8
//
// Names are those of the list, their segmented forms, or auto. A size is a whole
// number with B, KiB, MiB, GiB (powers of two), KB, MB or GB. The last name of a
// ladder has no size; sizes rise. A ladder without an operation counts for those
// that have no ladder of their own; where its algorithm lacks an operation,
// Choose decides. The empty text is auto.
func ParseSelection(text string) (Selection, error) {
	var s Selection
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	for _, part := range strings.Split(text, ";") {
		r, err := parseRule(strings.TrimSpace(part))
		if err != nil {
			return Selection{}, err
		}
		for _, other := range s.rules {
			if other.all == r.all && other.kind == r.kind {
				return Selection{}, fmt.Errorf("%q: a second list of algorithms for the same operation", part)
			}
		}
		s.rules = append(s.rules, r)
	}
	return s, nil
}

func parseRule(text string) (rule, error) {
	r := rule{all: true}
	kind, ladder, named := strings.Cut(text, "=")
	if named {
		k, err := ParseKind(strings.TrimSpace(kind))
		if err != nil {
			return r, err
		}
		r.all, r.kind = false, k
	} else {
		ladder = text
	}
	least := -1
	steps := strings.Split(ladder, ",")
	for i, step := range steps {
		name, size, sized := strings.Cut(step, ":")
		a, err := lookupOrAuto(strings.TrimSpace(name))
		if err != nil {
			return r, err
		}
		if named && a.Name != auto && !a.Does(r.kind) {
			return r, fmt.Errorf("algorithm %s has no %v", a.Name, r.kind)
		}
		upTo := math.MaxInt
		switch last := i == len(steps)-1; {
		case last == sized:
			return r, fmt.Errorf("%q: all algorithms but the last need a size up to which they serve, as in tree:64KiB,ring", ladder)
		case sized:
			if upTo, err = parseSize(strings.TrimSpace(size)); err != nil {
				return r, err
			}
		}
		if upTo <= least {
			return r, fmt.Errorf("%q: sizes must rise", ladder)
		}
		least = upTo
		r.ladder = append(r.ladder, rung{a, upTo})
	}
	return r, nil
}

func lookupOrAuto(name string) (Algorithm, error) {
	if name == auto {
		return Algorithm{Name: auto}, nil
	}
	return Lookup(name)
}

type unit struct {
	name  string
	bytes int
}

func units() []unit {
	return []unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}
}

func parseSize(text string) (int, error) {
	for _, u := range units() {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 40)
		if err != nil || n > uint64(math.MaxInt/u.bytes) {
			break
		}
		return int(n) * u.bytes, nil
	}
	return 0, fmt.Errorf("%q is no size such as 64KiB or 1MB", text)
}

// String is the selection as ParseSelection reads it.
func (s Selection) String() string {
	var rules []string
	for _, r := range s.rules {
		var steps []string
		for _, step := range r.ladder {
			name := step.algorithm.Name
			if step.upTo != math.MaxInt {
				at := slices.IndexFunc(units(), func(u unit) bool { return step.upTo%u.bytes == 0 })
				name += fmt.Sprintf(":%d%s", step.upTo/units()[at].bytes, units()[at].name)
			}
			steps = append(steps, name)
		}
		ladder := strings.Join(steps, ",")
		if !r.all {
			ladder = r.kind.String() + "=" + ladder
		}
		rules = append(rules, ladder)
	}
	if len(rules) == 0 {
		return auto
	}
	return strings.Join(rules, ";")
}

// Choose returns the algorithm that the selection names, or else the cheapest.
func (s Selection) Choose(k Kind, w World, bytes int, links Links) Algorithm {
	if a, ok := s.named(k, bytes); ok {
		return a
	}
	return Choose(k, w, bytes, links)
}

func (s Selection) named(k Kind, bytes int) (Algorithm, bool) {
	at := slices.IndexFunc(s.rules, func(r rule) bool { return !r.all && r.kind == k })
	if at < 0 {
		at = slices.IndexFunc(s.rules, func(r rule) bool { return r.all })
	}
	if at < 0 {
		return Algorithm{}, false
	}
	for _, step := range s.rules[at].ladder {
		if bytes <= step.upTo {
			return step.algorithm, step.algorithm.Does(k)
		}
	}
	return Algorithm{}, false
}
