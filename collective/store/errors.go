package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/collective/internal/challenge"
)

// ErrToken is wrapped by Dial's error when the server holds another job token.
var ErrToken = challenge.ErrToken

// ErrClosed is wrapped by what a closed client returns.
var ErrClosed = errors.New("closed")

// WaitError says which keys did not appear in time.
type WaitError struct {
	Address string
	Missing []string // a part of what was asked for; all of it when the store is gone
	Err     error
}

func (e *WaitError) Error() string {
	const shown = 8
	keys := e.Missing
	more := ""
	if len(keys) > shown {
		more = fmt.Sprintf(" and %d more", len(keys)-shown)
		keys = keys[:shown]
	}
	return fmt.Sprintf("store %s: still waiting for %s%s: %v", e.Address, strings.Join(keys, ", "), more, e.Err)
}

func (e *WaitError) Unwrap() error { return e.Err }
