package schedule

// run runs a lowered schedule's sends and receives, each rank in its order. If
// sends block, a message moves when both ranks have come to it; otherwise there
// is a queue from each rank to each other. Computations cost nothing here: what
// they need from their own rank only depends on its order.
func (m *movement) run(blocking bool) error {
	r := moving{movement: m, blocking: blocking, next: make([]int, len(m.s)), queues: map[[2]int][]Action{}}
	var ready []int
	for rank := range m.s {
		ready = append(ready, rank)
	}
	for len(ready) > 0 {
		rank := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for {
			peer, moved, err := r.step(rank)
			if err != nil {
				return err
			}
			if !moved {
				break
			}
			if peer >= 0 {
				ready = append(ready, peer)
			}
		}
	}
	for rank, list := range m.s {
		if next := r.next[rank]; next < len(list) {
			return r.stuck(rank, list[next])
		}
	}
	return nil
}

type moving struct {
	*movement
	blocking bool
	next     []int
	queues   map[[2]int][]Action // sent and not received, by sender and receiver
}

// step runs a rank's next action, if it can. peer is the rank that may go on
// because of it, or -1.
func (r *moving) step(rank int) (peer int, moved bool, err error) {
	if r.next[rank] == len(r.s[rank]) {
		return -1, false, nil
	}
	a := r.s[rank][r.next[rank]]
	if a.Kind < SendForward {
		r.next[rank]++
		return -1, true, nil
	}
	peer = r.peer(a)
	isSend := a.Kind == SendForward || a.Kind == SendBackward
	switch {
	case r.blocking:
		if next := r.next[peer]; next == len(r.s[peer]) || r.s[peer][next] != otherEnd(a) {
			return -1, false, nil
		}
		r.next[peer]++
	case isSend:
		r.queues[[2]int{rank, peer}] = append(r.queues[[2]int{rank, peer}], a)
	default:
		queue := r.queues[[2]int{peer, rank}]
		if len(queue) == 0 {
			return -1, false, nil
		}
		if queue[0] != otherEnd(a) {
			return -1, false, r.s.fault(Position{rank, r.next[rank]}, "%s would receive %s, which rank %d sends before %s", a, queue[0], peer, otherEnd(a))
		}
		r.queues[[2]int{peer, rank}] = queue[1:]
	}
	r.next[rank]++
	return peer, true, nil
}

func (r *moving) stuck(rank int, a Action) error {
	how := "that do not block"
	if r.blocking {
		how = "that block"
	}
	peer := r.peer(a)
	held := "the end of its list"
	if next := r.next[peer]; next < len(r.s[peer]) {
		held = r.s[peer][next].String()
	}
	return r.s.fault(Position{rank, r.next[rank]}, "with sends %s, %s waits for %s of rank %d, which is held up at %s", how, a, otherEnd(a), peer, held)
}
