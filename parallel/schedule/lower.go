package schedule

import (
	"cmp"
	"slices"
)

// Lower adds to a schedule of computations what an executor needs besides: Arm
// and Wait, as WithArms does, unless s has them or has no backward pass, and a
// send and a receive for every value that goes to another rank. A SendForward
// stands right behind its Forward and carries the stage's output, a SendBackward
// behind its Backward or Input and carries the gradient of the stage's input.
// A RecvForward brings a stage's input and a RecvBackward the gradient of its
// output. A value for a stage of the same rank is passed on in memory and has
// neither.
//
// A receive stands where the model time of Simulate, with unit costs, has the
// message arrive, so it may come long before the action that needs the value.
// This gives all ranks one order of everything that happens, in which a message
// is sent and received at one time. So no rank waits for ever, whether sends
// block until they are received or not, and messages from one rank to another
// are received in the order in which they are sent. CheckLowered proves both.
// A send and a receive that the same two ranks exchange at one time stand next
// to each other on both: BatchEnd tells how far such a batch goes.
//
// A schedule in which ranks wait for each other is an *Error.
func Lower(s Schedule) (Schedule, error) {
	timing, err := s.Simulate(Costs{})
	if err != nil {
		return nil, err
	}
	if !s.hasArms() && s.hasBackward() {
		s = WithArms(s, s.Stages())
		if timing, err = s.Simulate(Costs{}); err != nil {
			return nil, err
		}
	}
	l := lowering{s: s, timing: timing, owners: s.Owners(), arriving: make([][]message, len(s))}
	for rank := range s {
		l.collect(rank)
	}
	out := make(Schedule, len(s))
	for rank := range s {
		out[rank] = l.rank(rank)
	}
	return out, nil
}

func (s Schedule) hasArms() bool {
	return s.has(func(a Action) bool { return a.Kind == Arm || a.Kind == Wait })
}

func (s Schedule) hasBackward() bool {
	return s.has(func(a Action) bool { return a.Kind == Backward || a.Kind == Input })
}

func (s Schedule) has(f func(Action) bool) bool {
	return slices.ContainsFunc(s, func(list []Action) bool { return slices.ContainsFunc(list, f) })
}

type lowering struct {
	s        Schedule
	timing   Timing
	owners   []int
	arriving [][]message // by receiving rank
}

// message is a value that leaves a rank at a time.
type message struct {
	at         float64
	send, recv Action
	from       Position // the computation that makes it
	to         int      // rank
}

// sendOf returns the message that a computation gives rise to, if any.
func (l *lowering) sendOf(from Position) (message, bool) {
	a := l.s[from.Rank][from.Index]
	m := message{from: from}
	switch a.Kind {
	case Forward:
		m.send = Action{SendForward, a.Stage, a.Micro}
	case Backward, Input:
		m.send = Action{SendBackward, a.Stage, a.Micro}
	default:
		return m, false
	}
	m.recv = otherEnd(m.send)
	stage := m.recv.Stage
	if stage < 0 || stage >= len(l.owners) || l.owners[stage] < 0 || l.owners[stage] == from.Rank {
		return m, false
	}
	m.to = l.owners[stage]
	m.at = l.timing.Ranks[from.Rank].Ends[from.Index]
	return m, true
}

// collect notes for the other ranks what the computations of a rank send them.
func (l *lowering) collect(rank int) {
	for i := range l.s[rank] {
		if m, ok := l.sendOf(Position{rank, i}); ok {
			l.arriving[m.to] = append(l.arriving[m.to], m)
		}
	}
}

// rank writes a rank's list: its actions in their order, each send at once, and
// each receive before the first action that starts when it has arrived or later.
func (l *lowering) rank(rank int) []Action {
	incoming := l.arriving[rank]
	slices.SortFunc(incoming, inTime)
	var out []Action
	var pending []message // sent or received, not written yet, by time
	write := func(until float64) {
		slices.SortStableFunc(pending, inTime)
		for len(pending) > 0 && pending[0].at <= until {
			m := pending[0]
			pending = pending[1:]
			if m.from.Rank == rank {
				out = append(out, m.send)
			} else {
				out = append(out, m.recv)
			}
		}
	}
	for i, a := range l.s[rank] {
		start := l.timing.Ranks[rank].Starts[i]
		for len(incoming) > 0 && incoming[0].at <= start {
			pending, incoming = append(pending, incoming[0]), incoming[1:]
		}
		write(start)
		out = append(out, a)
		if m, ok := l.sendOf(Position{rank, i}); ok {
			pending = append(pending, m)
		}
	}
	write(l.timing.Span)
	return out
}

// inTime orders messages, the same way on all ranks. Those that two ranks send
// each other at one time are neighbours.
func inTime(a, b message) int {
	return cmp.Or(
		cmp.Compare(a.at, b.at),
		cmp.Compare(min(a.from.Rank, a.to), min(b.from.Rank, b.to)),
		cmp.Compare(max(a.from.Rank, a.to), max(b.from.Rank, b.to)),
		cmp.Compare(a.from.Rank, b.from.Rank),
		cmp.Compare(a.from.Index, b.from.Index),
	)
}
