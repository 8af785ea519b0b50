package collective

import (
	"errors"
	"fmt"
)

// ErrClosed is wrapped by what a closed transport or Comm returns.
var ErrClosed = errors.New("closed")

// LinkError says that the link to a peer broke: it died, closed or was cut off.
type LinkError struct {
	Rank, Peer int
	Err        error
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("rank %d lost rank %d: %v", e.Rank, e.Peer, e.Err)
}

func (e *LinkError) Unwrap() error { return e.Err }

// DepartedError is a LinkError's reason when the peer lives and left because it
// had lost another rank, which is the one to blame.
type DepartedError struct{ Rank, Lost int }

func (e *DepartedError) Error() string {
	return fmt.Sprintf("rank %d has left, having lost rank %d", e.Rank, e.Lost)
}

func (e *DepartedError) Unwrap() error { return ErrClosed }

// HeadSize is how many of a misfitting message's first bytes a LengthError
// keeps at most.
const HeadSize = 64

// LengthError says that a message was not as long as its receiver expected.
type LengthError struct {
	Peer      int
	Tag       Tag
	Want, Got int
	// Head is a copy of the message's first min(Got, HeadSize) bytes: the
	// header of a call, from which the error names what the peer runs.
	Head []byte
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("rank %d sent %d bytes where %d were expected", e.Peer, e.Got, e.Want)
}

// PeerError is the error of a call: which rank saw it, in which call, and which
// peer caused it (-1 when unknown).
type PeerError struct {
	Generation uint32
	Group      string // the Comm's name
	Sequence   uint64 // of the call in its Comm, from 1; 0: of none
	Rank, Peer int
	Call       string // such as "all-reduce sum of 1024 f32"
	Label      string
	// Global is what the transport calls the group's ranks, which the text names
	// instead: those of a sub-group mean little to a reader. nil: the same.
	Global []int
	Err    error
}

func (e *PeerError) global(rank int) int {
	if rank >= 0 && rank < len(e.Global) {
		return e.Global[rank]
	}
	return rank
}

func (e *PeerError) Error() string {
	s := fmt.Sprintf("rank %d, group %s", e.global(e.Rank), e.Group)
	if e.Sequence > 0 { // else messages, of which none had begun
		s += fmt.Sprintf(", call %d", e.Sequence)
	}
	s += " (" + e.Call + ")"
	if e.Label != "" {
		s += " of " + e.Label
	}
	if e.Peer >= 0 {
		s += fmt.Sprintf(": peer %d", e.global(e.Peer))
	}
	return s + ": " + e.Err.Error()
}

func (e *PeerError) Unwrap() error { return e.Err }
