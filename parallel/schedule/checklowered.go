package schedule

// CheckLowered proves that a lowered schedule moves every value rightly: each
// that another rank needs is sent once, behind what makes it, and received once,
// before what needs it; a rank receives from another in the order in which that
// sends; and no rank waits for ever, be it that a send ends when its message is
// received or at once. A fault is an *Error that shows where. That the
// computations are right is proved by Check, which lowers and does this as well.
func (s Schedule) CheckLowered() error {
	m := &movement{s: s, owners: s.Owners(), places: newPlaces(s)}
	for rank, list := range s {
		for i, a := range list {
			if a.Kind == Arm || a.Kind == Wait {
				continue
			}
			if before, ok := m.places.of(product(a)); ok {
				return s.fault(Position{rank, i}, "%s stands at rank %d, action %d already", a, before.Rank, before.Index)
			}
			m.places.put(product(a), Position{rank, i})
		}
	}
	for rank, list := range s {
		for i, a := range list {
			if err := m.visit(Position{rank, i}, a); err != nil {
				return err
			}
		}
	}
	if err := m.run(true); err != nil {
		return err
	}
	return m.run(false)
}

// movement is the check of a lowered schedule's messages.
type movement struct {
	s      Schedule
	owners []int
	places *places // Backward as Input
}

// visit checks that what must go with an action is there.
func (m *movement) visit(at Position, a Action) error {
	switch a.Kind {
	case Forward:
		return m.linked(at, a, Action{RecvForward, a.Stage, a.Micro}, Action{SendForward, a.Stage, a.Micro})
	case Backward, Input:
		return m.linked(at, a, Action{RecvBackward, a.Stage, a.Micro}, Action{SendBackward, a.Stage, a.Micro})
	case SendForward, RecvForward, SendBackward, RecvBackward:
	default:
		return nil
	}
	if owner := m.ownerOf(a.Stage); owner != at.Rank {
		return m.s.fault(at, "%s, but rank %d has stage %d", a, owner, a.Stage)
	}
	peer := m.peer(a)
	if peer < 0 || peer == at.Rank {
		return m.s.fault(at, "%s goes to no other rank", a)
	}
	if place, ok := m.places.of(otherEnd(a)); !ok || place.Rank != peer {
		return m.s.fault(at, "%s without %s on rank %d", a, otherEnd(a), peer)
	}
	need := Action{Forward, a.Stage, a.Micro}
	if a.Kind == SendBackward || a.Kind == RecvBackward {
		need.Kind = Input
	}
	if place, ok := m.places.of(need); !ok || place.Rank != at.Rank {
		return m.s.fault(at, "%s without %s on its rank", a, need)
	}
	return nil
}

// linked checks the receive and the send that belong to a computation.
func (m *movement) linked(at Position, a, recv, send Action) error {
	for _, link := range []Action{recv, send} {
		peer := m.peer(link)
		if peer < 0 || peer == at.Rank {
			continue
		}
		place, ok := m.places.of(link)
		switch {
		case !ok || place.Rank != at.Rank:
			return m.s.fault(at, "%s without %s on its rank", a, link)
		case link == recv && place.Index > at.Index:
			return m.s.fault(place, "%s comes after %s", link, a)
		case link == send && place.Index < at.Index:
			return m.s.fault(place, "%s comes before %s", link, a)
		}
	}
	return nil
}

func (m *movement) ownerOf(stage int) int {
	if stage < 0 || stage >= len(m.owners) {
		return -1
	}
	return m.owners[stage]
}

// peer is as Peer, and -1 behind the ends of the pipeline.
func (m *movement) peer(a Action) int { return m.ownerOf(otherEnd(a).Stage) }

// otherEnd is the receive of a send and the send of a receive.
func otherEnd(a Action) Action {
	switch a.Kind {
	case SendForward:
		return Action{RecvForward, a.Stage + 1, a.Micro}
	case RecvForward:
		return Action{SendForward, a.Stage - 1, a.Micro}
	case SendBackward:
		return Action{RecvBackward, a.Stage - 1, a.Micro}
	}
	return Action{SendBackward, a.Stage + 1, a.Micro}
}
