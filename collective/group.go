package collective

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/observe"
)

// GroupConfig says how a Group works. The zero value is usable.
type GroupConfig struct {
	// Name is the group's name in errors and the lane of its spans. Groups over
	// one transport need different names or generations, also those after each other:
	// of one that has ended, notices and answers may be left that nobody has read,
	// a kilobyte or two a peer.
	Name string
	// Timeout bounds every call from when it begins to run, and messages of an
	// Exchange from when somebody waits for them. 0: 60 s.
	Timeout time.Duration
	// Algorithm selects for calls that name none, as plan.ParseSelection reads
	// it: "ring", or "tree:64KiB,ring". "" or "auto": the cheapest by
	// plan.Choose, or a paced all-reduce where Links are slow.
	Algorithm string
	// Links is what that choice reckons with.
	Links plan.Links
	// Packed says which calls' messages have their floats packed without loss (package
	// pack), which pays on slow links: PackingPays. Exchanges are not packed. It needs
	// a transport that always offers RecvInPlace where it packs.
	Packed Packing
	// Events receives the spans Call and CallWait, of Exchange on the lanes
	// "NAME send" and "NAME receive"; nil drops them.
	Events *observe.Recorder
	// Generation counts regroupings of the job.
	Generation uint32
	// Reducer is the arithmetic; nil: plain loops.
	Reducer Reducer
	// Monitor watches this Group and its sub-groups; nil: nobody does.
	Monitor Monitor
}

// Group is a Comm over a Transport. It has a goroutine that runs its calls in
// order, one that sends while it receives, one per watched peer that learns of
// failures, and one per peer and direction of Exchange: Close waits for all.
type Group struct {
	transport Transport
	config    GroupConfig
	reducer   Reducer
	id        uint64 // names the group in tags
	rank      int
	ranks     []int // the transport's rank of each of this group's ranks
	hosts     [][]int
	processes [][]int // nil: each rank is its own
	family    *family // which it shares with the groups that it was made of

	selection      plan.Selection
	selectionError error // of every call that names no algorithm

	ctx    context.Context // ends when the group dies
	cancel context.CancelFunc
	owned  sync.WaitGroup

	mu           sync.Mutex
	first, last  *Work // the queue
	running      bool  // somebody executes calls
	spare        *Work // for run
	sequence     uint64
	subs         int // sub-groups made so far
	death        *PeerError
	deadly       *Work // the call that met it, or nil
	closed       bool
	told         chan struct{} // closed when the peers know of the death
	left         map[int]bool  // peers that closed
	departed     atomic.Bool   // there are some
	closedBy     int           // the first of them, or -1
	closedAfter  uint64        // and the last call that it takes part in
	closedFor    string        // and why, or ""
	lanes        map[lane]*exchangeLane
	wake         chan struct{}
	currentLocal atomic.Uint64 // the running call's sequence number, or 0
	current      atomic.Pointer[Work]
	ended        atomic.Uint64 // the newest call that has succeeded
	made         time.Time
	began        atomic.Int64      // when the newest call began to run, in nanoseconds after that; 0: none has
	suspects     map[int]suspicion // what holds peers up, by rank
	suspicions   int               // that have arisen
	recent       [32]header        // of the newest calls
	executor     executor
}

var _ Comm = (*Group)(nil)

// NewGroup makes the Comm of all ranks of t. Every rank makes it with the same
// config (Events and Reducer aside). The caller closes the Group first, then
// the transport.
func NewGroup(t Transport, config GroupConfig) *Group {
	ranks := make([]int, t.Size())
	for r := range ranks {
		ranks[r] = r
	}
	if config.Name == "" {
		config.Name = "world"
	}
	return newGroup(t, config, ranks, 0, &family{})
}

func newGroup(t Transport, config GroupConfig, ranks []int, parent uint64, family *family) *Group {
	if config.Timeout == 0 {
		config.Timeout = 60 * time.Second
	}
	g := &Group{
		transport: t, config: config, reducer: config.Reducer, ranks: ranks, family: family,
		made: time.Now(), id: groupID(config, ranks, parent), rank: slices.Index(ranks, t.Rank()),
		told: make(chan struct{}), wake: make(chan struct{}, 1), lanes: map[lane]*exchangeLane{}, left: map[int]bool{}, closedBy: -1,
	}
	if g.reducer == nil {
		g.reducer = plainReducer{}
	}
	g.hosts, g.processes = local(t.Hosts(), ranks), local(t.Processes(), ranks)
	g.selection, g.selectionError = plan.ParseSelection(config.Algorithm)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.executor.init(g)
	g.owned.Go(g.work)
	for _, peer := range g.watched() {
		g.owned.Go(func() { g.watch(peer) })
	}
	if config.Monitor != nil {
		config.Monitor.Opened(g)
	}
	return g
}

// groupID names a group alike on all of its ranks.
func groupID(config GroupConfig, ranks []int, parent uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %d %v", config.Name, config.Generation, parent, ranks)
	return h.Sum64()
}

// local renumbers a transport's hosts or processes for some of its ranks.
func local(all [][]int, ranks []int) [][]int {
	var lists [][]int
	for _, list := range all {
		var members []int
		for r, global := range ranks {
			if slices.Contains(list, global) {
				members = append(members, r)
			}
		}
		if len(members) > 0 {
			lists = append(lists, members)
		}
	}
	slices.SortFunc(lists, func(a, b []int) int { return a[0] - b[0] })
	return lists
}

// Rank implements Comm.
func (g *Group) Rank() int { return g.rank }

// Size implements Comm.
func (g *Group) Size() int { return len(g.ranks) }

// Hosts implements Comm. The caller must not change it.
func (g *Group) Hosts() [][]int { return g.hosts }

// Generation implements Comm.
func (g *Group) Generation() uint32 { return g.config.Generation }

// Name returns the group's name.
func (g *Group) Name() string { return g.config.Name }

// A tag names the group and what a message is for. The group's calls run in one
// order on all ranks, so their messages need no further numbers: a message of
// another call is found by its header, also long after that call.
const (
	callChannel = iota
	noticeChannel
	exchangeChannel
	answerChannel
	channels = 16
)

func (g *Group) tag(channel uint64) Tag { return Tag(g.id - g.id%channels + channel) }

// Close implements Comm: calls that have not ended fail with ErrClosed. The
// transport stays open. Peers notice when they start a call after the last one
// that this rank took part in.
func (g *Group) Close() error {
	g.mu.Lock()
	closed := g.closed
	g.closed = true
	g.mu.Unlock()
	if !closed {
		g.leave()
		if g.config.Monitor != nil {
			g.config.Monitor.Closed(g)
		}
	}
	g.owned.Wait()
	g.executor.guard.close()
	if !closed {
		g.executor.closeShared()
	}
	return nil
}
