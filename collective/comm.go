package collective

import (
	"context"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// Op is how values of several ranks become one.
type Op uint8

// The reductions. Mean divides the sum by the number of ranks, after it, in
// float32 for 16-bit types; integers divide rounding towards zero.
const (
	Sum Op = iota
	Prod
	Max
	Min
	Mean
)

// Codec turns float32 values into bytes for the wire and back; a nil Codec sends
// values as they are. Package wire implements it. A call uses it from one
// goroutine, on pieces of the vector, of which each contribution and each sum is
// encoded once; at is the place of a piece's first value in the whole vector. How
// many bytes a piece takes depends on its length only, so that a receiver knows
// what to wait for and no message has to tell.
type Codec interface {
	// Name is the format with its settings: ranks whose names differ run
	// different calls.
	Name() string
	EncodedLen(n int) int
	// Begin is given what this rank itself contributes to a piece that it sums,
	// before it adds what the others sent. It may change it.
	Begin(own []float32, at int)
	// Encode encodes what this rank contributes to a piece that another one sums.
	Encode(dst []byte, contribution []float32, at int)
	// EncodeSum encodes a piece that this rank has summed; all ranks, this one
	// too, get what the bytes decode to.
	EncodeSum(dst []byte, sum []float32, at int)
	Decode(dst []float32, src []byte)
	DecodeAdd(dst []float32, src []byte)
}

// Call is one collective operation. All ranks of a Comm start the same calls in
// the same order; ranks that do not get an error that prints both.
//
// In and Out: AllReduce, Reduce and Broadcast take vectors of one length. Out
// zero means in place. AllGather: In is the own part, Out the whole;
// ReduceScatter: In is the whole, Out the own part; Gather and Scatter
// likewise, with Out (Gather) and In (Scatter) needed on Root only. AllToAll: In
// and Out are cut in one part per rank. Bounds, where given, have Size()+1
// ascending offsets into the whole vector; nil cuts equally (plan.Cut). In is
// not changed when Out is given. In place, Reduce may change In on all ranks and
// ReduceScatter all of In; AllGather and Gather then take the whole in In, the
// own part in its place (Gather: on Root; the others have only their part).
type Call struct {
	Kind        plan.Kind
	Op          Op
	Root        int
	In, Out     device.Buf
	InBounds    []int // AllToAll: parts of In; else cuts of the whole
	OutBounds   []int // AllToAll: parts of Out
	Algorithm   string
	Codec       Codec        // AllReduce of F32, Sum and Mean, without bounds; see compileCoded
	AcrossHosts bool         // the Codec is for what goes from host to host only
	After       device.Event // the call waits for it; nil: ready now
	Label       string       // bucket and parameters, for reports
	agree       uint32       // what a Barrier agrees upon, beside itself
	alloc       *allocated   // of an allocation
}

// PointToPoint is one send or receive of an Exchange.
type PointToPoint struct {
	Peer int
	Recv bool
	Buf  device.Buf
}

// Comm is a set of ranks that communicate. Calls of one Comm run in the order
// in which they were started, several Comms run side by side. Buffers belong to
// the call from Start until its Work is done. A Comm is safe for concurrent
// use, but ranks must agree on the order of calls, so in practice one goroutine
// starts them.
//
// After a failed call the Comm is dead: every pending and later call returns
// that error, on every rank within the time-out. A buffer of a failed call is
// undefined.
type Comm interface {
	Rank() int
	Size() int
	// Hosts lists this Comm's ranks by host.
	Hosts() [][]int
	// Generation counts regroupings of the job; 0 at first.
	Generation() uint32
	// Alloc is collective: it returns n zeroed elements, registered with the
	// transport where that shares memory, until the transport is closed. Buckets
	// live there.
	Alloc(ctx context.Context, t device.Type, n int) (device.Buf, error)
	// Start enqueues c and never blocks. ctx bounds the call.
	Start(ctx context.Context, c Call) *Work
	// Exchange starts one batch of sends and receives with any peers; pairs are
	// matched first in, first out per direction. It is not ordered with Start.
	Exchange(ctx context.Context, batch []PointToPoint) *Work
	// Sub is collective over this Comm: it makes a Comm of ranks (numbered in
	// the list's order) and returns nil to ranks that are not listed.
	Sub(ctx context.Context, ranks []int) (Comm, error)
	Close() error
}
