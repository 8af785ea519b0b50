package observe

import (
	"sync"
	"time"
)

// Kind says what a span was spent on.
type Kind uint8

// The kinds of spans.
const (
	Step      Kind = iota // one optimizer step, all of it
	Data                  // waiting for the next batch
	Forward               // a block or a whole micro-batch
	Backward              // likewise
	Optimizer             // the update
	Call                  // a collective call's own running time, on its Comm's lane
	CallWait              // from a call's start until its last peer arrived
	Exposed               // the step waits for calls and computes nothing
	Bucket                // from a bucket's release to its result
	Evaluate
	Checkpoint
	Stall  // a call that waited for long, or a rank that was not heard of; Name is the report
	Bubble // a stage waits for what another has not computed yet, and computes nothing
)

var kindNames = [...]string{"step", "data", "forward", "backward", "optimizer", "call", "wait", "exposed", "bucket", "evaluate", "checkpoint", "stall", "bubble"}

func (k Kind) String() string { return kindNames[k] }

// Valid reports whether k is one of the kinds above; String panics for others.
func (k Kind) Valid() bool { return int(k) < len(kindNames) }

// Span is one event: a stretch of time on a lane.
type Span struct {
	Kind       Kind
	Lane       string // "compute", or a communicator's name
	Name       string // block, call or bucket; a constant or long-lived string
	Start, End int64  // nanoseconds since the Unix epoch
	Step       int    // 1 for the first; 0 where the recording library knows of no steps
	Micro      int    // micro-batch, or bucket index
	Bytes      int64  // sent by this rank, where it applies
	BytesIn    int64
	Saved      int64 // of Bytes, what packing has kept from being sent
}

// Duration returns the span's length.
func (s Span) Duration() time.Duration { return time.Duration(s.End - s.Start) }

// Recorder keeps the newest spans. A nil *Recorder accepts and drops
// everything. Its methods are safe for concurrent use: a monitor may report a
// stall while a trainer drains.
type Recorder struct {
	mu    sync.Mutex
	size  int    // the most that spans may grow to
	spans []Span // a ring
	next  uint64
	read  uint64
}

// firstSpans is how many spans a Recorder has room for at first. The garbage
// collector reads room that nobody uses too.
const firstSpans = 1 << 9

// NewRecorder keeps the last size spans (a power of two is not required).
func NewRecorder(size int) *Recorder {
	size = max(size, 1)
	return &Recorder{size: size, spans: make([]Span, min(size, firstSpans))}
}

// Now returns the clock that spans use, or 0 when r is nil.
func (r *Recorder) Now() int64 {
	if r == nil {
		return 0
	}
	return time.Now().UnixNano()
}

// Record keeps s. It allocates nothing but, up to size, for more spans than there
// ever were between two Drains.
func (r *Recorder) Record(s Span) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.spans); r.next-r.read == uint64(n) && n < r.size {
		r.grow()
	}
	r.spans[r.next%uint64(len(r.spans))] = s
	r.next++
}

// grow doubles the room of a ring that is full.
func (r *Recorder) grow() {
	n := len(r.spans)
	larger := make([]Span, min(2*n, r.size))
	at := int(r.read % uint64(n))
	copy(larger[copy(larger, r.spans[at:]):], r.spans[:at])
	r.spans, r.read, r.next = larger, 0, uint64(n)
}

// Drain calls f for every span since the last Drain, oldest first, and returns
// how many had been overwritten before they could be read. f must not call the
// Recorder.
func (r *Recorder) Drain(f func(Span)) (lost int) {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := uint64(len(r.spans))
	if r.next-r.read > n {
		lost = int(r.next - r.read - n)
		r.read = r.next - n
	}
	for ; r.read < r.next; r.read++ {
		f(r.spans[r.read%n])
	}
	r.next, r.read = 0, 0 // in memory that has pages already
	return lost
}
