package collective

import (
	"fmt"
	"sync"
)

// family is a group with the sub-groups that were made of it and of those. A
// rank that has lost one of them closes the others, and says why: their peers may
// know nothing of the one that was lost.
type family struct {
	mu    sync.Mutex
	cause string // what the first of them died of, in words
}

// mourn keeps what a group died of, if it is the first.
func (f *family) mourn(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause == "" {
		f.cause = reason
	}
}

// reason returns what the first of the groups died of, or "".
func (f *family) reason() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cause
}

// closedError is what a call ends with whose peer has closed the group, for a
// reason that may be "".
func closedError(reason string) error {
	if reason == "" {
		return fmt.Errorf("it %w the group", ErrClosed)
	}
	return fmt.Errorf("it %w the group after this: %s", ErrClosed, reason)
}
