package schedule

// places finds where an action stands: the first place of each. It is a table
// where a schedule is about as full as it should be, else a map, so that a list
// with one absurd number costs no more than it is long.
type places struct {
	stages, micros int
	table          []Position // Rank is one more than it is; 0 for none
	sparse         map[Action]Position
}

// newPlaces makes room for the actions of s and puts none in.
func newPlaces(s Schedule) *places {
	p := &places{stages: 1, micros: 1}
	actions := 0
	for _, list := range s {
		actions += len(list)
		for _, a := range list {
			p.stages, p.micros = max(p.stages, a.Stage+1), max(p.micros, a.Micro+1)
		}
	}
	if size := len(kindNames) * p.stages * p.micros; size <= 16*actions+1024 {
		p.table = make([]Position, size)
	} else {
		p.sparse = map[Action]Position{}
	}
	return p
}

func (p *places) index(a Action) int {
	return (int(a.Kind)*p.stages+a.Stage)*p.micros + a.Micro
}

// put notes the place of a, unless it has one.
func (p *places) put(a Action, at Position) {
	if _, ok := p.of(a); ok {
		return
	}
	if p.sparse != nil {
		p.sparse[a] = at
		return
	}
	p.table[p.index(a)] = Position{at.Rank + 1, at.Index}
}

func (p *places) of(a Action) (at Position, ok bool) {
	switch {
	case p.sparse != nil:
		at, ok = p.sparse[a]
		return at, ok
	case a.Stage < 0 || a.Stage >= p.stages || a.Micro < 0 || a.Micro >= p.micros:
		return at, false
	}
	at = p.table[p.index(a)]
	return Position{at.Rank - 1, at.Index}, at.Rank > 0
}

// ofProduct is of, for the action that makes what a makes: an Input may be a
// Backward.
func (p *places) ofProduct(a Action) (at Position, ok bool) {
	if at, ok = p.of(a); !ok && a.Kind == Input {
		a.Kind = Backward
		at, ok = p.of(a)
	}
	return at, ok
}
