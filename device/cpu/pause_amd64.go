package cpu

// pause tells the processor that the thread only looks for a change: some tens
// of nanoseconds in which the core's other work goes first.
//
//go:noescape
func pause()
