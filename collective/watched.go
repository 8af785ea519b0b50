package collective

// Watched is a Comm that a Monitor can look at: a Group, or one over other libraries.
// Its methods are called by any goroutine, also while calls run.
type Watched interface {
	// ID names the Comm alike on all of its ranks, and apart from others.
	ID() uint64
	Name() string
	// Ranks lists the world's rank of each rank. The caller must not change it.
	Ranks() []int
	Progress() Progress
	// Lost and Suspect are as a Group's.
	Lost(rank int, reason error) bool
	Suspect(rank int, text string)
}

var _ Watched = (*Group)(nil)

// Awaited reports that somebody waits for w's end, by Done or by Wait: the time-out of
// a receive that was posted ahead begins then. It is for Comms that make their Works by
// NewWork.
func (w *Work) Awaited() bool { return w.asked() }
