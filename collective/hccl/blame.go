//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective"
)

// peerFailure is an error that a rank of the world caused.
type peerFailure struct {
	rank int
	err  error
}

func (e *peerFailure) Error() string { return e.err.Error() }
func (e *peerFailure) Unwrap() error { return e.err }

// lost is another rank's failure, as it told it.
type lost struct{ text string }

func (e *lost) Error() string { return fmt.Sprintf("another rank has failed: %s", e.text) }

// culprit is who of some ranks caused an error, by its place among them, or -1, and
// the error without that.
func culprit(ranks []int, err error) (peer int, rest error) {
	var link *collective.LinkError
	var failure *peerFailure
	switch {
	case errors.As(err, &failure):
		return slices.Index(ranks, failure.rank), failure.err
	case errors.As(err, &link):
		return slices.Index(ranks, link.Peer), err
	}
	return -1, err
}

// suspicion is what holds a rank of the world up, as far as it is known.
type suspicion struct {
	rank int
	text string
}

// Suspect implements collective.Watched: whoever waits in vain blames that rank. The
// Comms of a rank share what they know.
func (c *Comm) Suspect(rank int, text string) {
	j := c.job
	j.mu.Lock()
	defer j.mu.Unlock()
	at := slices.IndexFunc(j.suspects, func(s suspicion) bool { return s.rank == rank })
	switch {
	case at >= 0 && text == "":
		j.suspects = slices.Delete(j.suspects, at, at+1)
	case at >= 0:
		j.suspects[at].text = text
	case text != "" && rank != j.config.Rank:
		j.suspects = append(j.suspects, suspicion{rank, text})
	}
}

// suspected is a time-out's error that blames the oldest suspect: whoever else does not
// take part by now may have given up because of that one. Where there is none it is err.
func (j *job) suspected(ranks []int, err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.suspects) == 0 {
		return err
	}
	s := j.suspects[0]
	if slices.Contains(ranks, s.rank) {
		return &peerFailure{s.rank, fmt.Errorf("it %s; %w", s.text, err)}
	}
	_, rest := culprit(ranks, err)
	return fmt.Errorf("rank %d %s; %w", s.rank, s.text, rest)
}

// Lost implements collective.Watched.
func (c *Comm) Lost(rank int, reason error) bool {
	if !slices.Contains(c.ranks, rank) || rank == c.config.Rank || c.ctx.Err() != nil {
		return false
	}
	c.job.cancel(&collective.LinkError{Rank: c.config.Rank, Peer: rank, Err: reason})
	return true
}
