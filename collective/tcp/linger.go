package tcp

import "time"

// How long Close waits for peers that still have to take what was sent.
const (
	lingerTime = time.Second // where nothing moves; in all, where a peer was lost and nothing is needed any more
	lookTime   = 50 * time.Millisecond
	// judgeTime is what a link may take to get going. After that it has to be fast
	// enough to be done before Config.Patience: what arrives later comes after the
	// time-out of whoever waits for it, and a peer that takes a byte now and then
	// would hold Close for ever.
	judgeTime = 5 * time.Second
	// cutOffLooks in a row, as a host that has lost a packet takes it soon.
	cutOffLooks     = 3
	defaultPatience = 60 * time.Second
)

// linger waits for the peers' farewells; where it is patient as long as what was sent
// moves fast enough.
func (t *Transport) linger(patient bool) {
	look := time.NewTicker(lookTime)
	defer look.Stop()
	p := t.newWaiting(time.Now())
	if !patient {
		p.limit = lingerTime
	}
	for _, l := range t.peers() {
		l.sockets[0].callReader()
		for cut := 0; cut < cutOffLooks; {
			select {
			case <-l.parted:
				cut = cutOffLooks
			case now := <-look.C:
				moved, over := p.look(p.own(now), t.moved(), t.taken(), t.owed)
				if cut++; !l.sockets[0].cutOff() || moved && patient {
					cut = 0
				}
				if over {
					return
				}
			}
		}
	}
}

// waiting judges whether it is of use to wait on.
type waiting struct {
	limit       time.Duration
	start       time.Time
	moving      time.Time // when something last moved
	sum         uint64    // Transport.moved then
	from        time.Time // the start, or that of a new connection, which counts anew
	taken, owed uint64    // bytes then: taken by peers' hosts, and still to be
	last        uint64    // bytes taken when it last looked
	seen, clock time.Time // what own was told last, and has said
}

// own is the time as it passes for this process: while that does not get to run, nor
// does what moves for it, and nothing can be said of peers.
func (p *waiting) own(now time.Time) time.Time {
	p.clock = p.clock.Add(min(now.Sub(p.seen), 2*lookTime))
	p.seen = now
	return p.clock
}

func (t *Transport) newWaiting(now time.Time) *waiting {
	return &waiting{
		limit: t.patience, start: now, moving: now, from: now, seen: now, clock: now,
		sum: t.moved(), taken: t.taken(), owed: t.owed(),
	}
}

// look is told what Transport.moved and taken are now, and asks for owed where it has to.
func (p *waiting) look(now time.Time, sum, taken uint64, owed func() uint64) (moved, over bool) {
	moved = sum != p.sum
	if moved {
		p.moving, p.sum = now, sum
	}
	if taken < p.last {
		p.from, p.taken, p.owed = now, taken, owed()
	}
	p.last = taken
	waited := now.Sub(p.start)
	if now.Sub(p.moving) >= lingerTime || waited >= p.limit {
		return moved, true
	}
	since, got := now.Sub(p.from), taken-p.taken
	if since < judgeTime || got >= p.owed {
		return moved, false
	}
	needs := float64(p.owed-got) / (float64(got) / since.Seconds()) // seconds at the pace so far
	return moved, needs > (p.limit - waited).Seconds()
}

// moved changes with what has been written, what peers' hosts have taken and what
// peers have handled.
func (t *Transport) moved() (sum uint64) {
	for _, s := range t.sockets() {
		s.out.mu.Lock()
		sum += uint64(s.out.written) + uint64(s.out.acked)
		s.out.mu.Unlock()
	}
	return sum + t.taken()
}

// taken is how many bytes the peers' hosts have taken, where the kernel tells.
func (t *Transport) taken() (sum uint64) {
	for _, s := range t.sockets() {
		sum += s.taken()
	}
	return sum
}

// owed is how many bytes they have not taken, where the kernel tells.
func (t *Transport) owed() (sum uint64) {
	for _, s := range t.sockets() {
		sum += s.owed()
	}
	return sum
}

// unwritten is how many bytes are in frames that are not written to their end.
func (o *output) unwritten() (n uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for f := o.cursor; f != nil; f = f.next {
		n += uint64(f.length())
	}
	return n
}
