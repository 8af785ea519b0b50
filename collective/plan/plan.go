package plan

import "iter"

// Kind is a collective operation.
type Kind uint8

// The operations. Send and receive are no plans: see collective.Comm.Exchange.
const (
	AllReduce Kind = iota
	Reduce
	Broadcast
	AllGather
	ReduceScatter
	Gather
	Scatter
	AllToAll
	Barrier
)

// Move is a message: rank From hands N chunks, from its chunk Src on, to rank
// To, which stores them at its chunk Dst or, with Reduce, reduces them into it.
// From and To may be equal.
type Move struct {
	From, To int
	Src, Dst int
	N        int
	Reduce   bool
}

// Round is a set of moves in flight together. Every move reads the buffers as
// they were before the round; stores and reductions apply in list order.
type Round []Move

// Plan is a collective operation as data: rounds of moves over vectors cut in
// Chunks chunks on each of Ranks ranks. Rounds may be ranged over repeatedly.
type Plan struct {
	Ranks, Chunks int
	Rounds        iter.Seq[Round]
}
