package monitor

// Fence kills the processes of this host's other ranks that a signal has stopped,
// and returns the ranks. A rank calls it when it has given the job up, after a
// call that failed: a stopped rank that goes on later must not write into memory
// that others still use, and nobody who leaves should wait for it to answer. One
// that a debugger holds is left alone.
func (m *Monitor) Fence() (ranks []int) {
	for rank := range m.Size {
		if h, met := m.here(rank); met && rank != m.Rank && m.own.near(h) && h.fence() {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}
