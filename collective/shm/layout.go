//go:build linux && (amd64 || arm64)

package shm

// The memory file, from its start; every mutable word has 128 bytes to itself,
// because processors fetch lines of 64 bytes in pairs:
//
//	control  magic, abort word, end of the heap | per rank: armed
//	         | table of domains | rings, one per ordered pair of ranks
//	domains  one after the other: words and slots, then staging windows
//	heap     what Alloc hands out
//
// The file is as large as it may ever get. Only what is touched takes memory.
const (
	magic      = 0x4d485346 // "FSHM"
	version    = 1
	line       = 128
	grain      = 64 << 10 // multiple of every page size
	fileSize   = 1 << 42
	domainsMax = 256
	slotData   = 32 << 10 // bytes of an inline call
	slotHead   = 128
)

// Offsets of the control block's words.
const (
	magicAt   = 0
	versionAt = 4
	ranksAt   = 8
	abortAt   = 1 * line // 1 + the rank that was found dead
	heapAt    = 2 * line // bytes of the heap that are taken
	armedAt   = 4 * line // one line per rank
)

// layout is a function of the number of ranks, hence the same for all of them.
type layout struct {
	ranks   int
	table   int // of domains: offset in the control block
	rings   int
	ring    int // bytes of a ring's data
	control int // bytes of the control block
	stage   int // bytes of a window of a private buffer
	slots   int // offset in a domain
	windows int // offset in a domain
	domain  int // bytes of a domain
	heap    int64
}

func newLayout(ranks int) layout {
	l := layout{ranks: ranks, ring: 512 << 10, stage: 256 << 10}
	if ranks > 4 {
		l.ring = 256 << 10
	}
	if ranks > 2 { // which often share processors: fewer turns
		l.stage = 1 << 20
	}
	l.table = armedAt + ranks*line
	l.rings = roundUp(l.table+domainsMax*line, 4096)
	l.control = roundUp(l.rings+ranks*ranks*l.ringStride(), grain)
	l.slots = line + 2*ranks*line
	l.windows = roundUp(l.slots+2*ranks*(slotHead+slotData), grain)
	l.domain = l.windows + ranks*l.stageStride()
	l.heap = int64(roundUp(l.control+domainsMax*l.domain, hugePage))
	return l
}

const hugePage = 2 << 20

func (l layout) ringStride() int { return ringHead + l.ring }

// stageStride is a rank's four windows.
func (l layout) stageStride() int { return 4 * l.stage }

func (l layout) ringAt(from, to int) int { return l.rings + (from*l.ranks+to)*l.ringStride() }

func (l layout) domainAt(i int) int64 { return int64(l.control) + int64(i)*int64(l.domain) }

// Offsets in a domain.
const counterAt = 0

func (l layout) flagAt(rank int) int     { return line + rank*line }
func (l layout) sleepingAt(rank int) int { return line + (l.ranks+rank)*line }
func (l layout) placeAt(rank int) int    { return l.sleepingAt(rank) + line/2 }

func (l layout) slotAt(parity, rank int) int {
	return l.slots + (parity*l.ranks+rank)*(slotHead+slotData)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
