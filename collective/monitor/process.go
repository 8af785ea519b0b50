package monitor

import (
	"encoding/json"
	"fmt"
	"os"
)

// here is what a rank's process says of itself when it starts.
type here struct {
	Host  string // where process ids mean the same
	Name  string // of the host, for people
	PID   int
	Start string // when the process began, so that its id is not mistaken later
}

func ownProcess() here {
	name, _ := os.Hostname() // a report may lack it
	h := here{Host: processHost(), Name: name, PID: os.Getpid()}
	h.Start, _ = processState(h.PID)
	return h
}

func (h here) encode() []byte {
	out, err := json.Marshal(h)
	if err != nil {
		panic(err) // no value of this type fails
	}
	return out
}

// near reports whether the process of other is one of this host, and not this
// one.
func (h here) near(other here) bool {
	return h.Host != "" && h.Host == other.Host && h.PID != other.PID && other.Start != ""
}

// stopped reports whether a process of this host is.
func (h here) stopped() bool {
	start, state := processState(h.PID)
	return start == h.Start && (state == 'T' || state == 't')
}

// ended reports whether a process of this host has.
func (h here) ended() bool {
	start, state := processState(h.PID)
	return start != h.Start || state == 'Z' || state == 'X'
}

// who is a rank's name in reports.
func (h here) who(rank int, own here) string {
	switch {
	case h.PID == 0 || h.PID == own.PID && h.Host == own.Host:
		return fmt.Sprintf("rank %d", rank)
	case h.Host == own.Host:
		return fmt.Sprintf("rank %d (pid %d)", rank, h.PID)
	}
	return fmt.Sprintf("rank %d (pid %d on %s)", rank, h.PID, h.Name)
}
