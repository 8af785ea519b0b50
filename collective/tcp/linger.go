package tcp

import "time"

// linger waits for the peers' farewells; where it is patient as long as anything of
// what was sent moves.
func (t *Transport) linger(patient bool) {
	end, look := time.NewTimer(lingerTime), time.NewTicker(lookTime)
	defer end.Stop()
	defer look.Stop()
	before := t.moved()
	for _, l := range t.peers() {
		l.sockets[0].callReader()
		for cut := 0; cut < cutOffLooks; {
			select {
			case <-l.parted:
				cut = cutOffLooks
			case <-look.C:
				if cut++; !l.sockets[0].cutOff() {
					cut = 0
				}
				if now := t.moved(); patient && now != before {
					before, cut = now, 0
					end.Reset(lingerTime)
				}
			case <-end.C:
				return
			}
		}
	}
}

// moved changes with what has been written, what peers' hosts have taken and what
// peers have handled.
func (t *Transport) moved() (sum uint64) {
	for _, s := range t.sockets() {
		s.out.mu.Lock()
		sum += uint64(s.out.written) + uint64(s.out.acked)
		s.out.mu.Unlock()
		sum += s.taken()
	}
	return sum
}
