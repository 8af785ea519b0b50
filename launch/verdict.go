package launch

import (
	"context"
	"errors"
	"fmt"
)

// witness is the first worker that ended because it lost another, and its last
// lines.
func (j *job) witness() (rank int, lines []string) {
	for _, w := range j.over {
		if code, _ := w.status(); code == exitPeer && !w.killed {
			return w.rank, w.log.lastLines()
		}
	}
	return 0, nil
}

// verdict finds the worker that is to blame and the job's exit code.
func (j *job) verdict(ctx context.Context) (int, error) {
	var blamed *worker
	interrupted := false
	for _, w := range j.over {
		code, _ := w.status()
		interrupted = interrupted || j.asked != nil && (w.killed || code != exitDone && !j.failed(w))
	}
	for _, w := range j.over {
		code, _ := w.status()
		switch {
		case w.killed || code == exitDone || !j.failed(w):
		case code == exitPeer && interrupted: // it only lost one that ended as asked
		case blamed == nil:
			blamed = w
		default:
			if first, _ := blamed.status(); first == exitPeer && code != exitPeer {
				blamed = w // the first only told of this one's end
			}
		}
	}
	switch {
	case blamed != nil:
		code, s := blamed.status()
		failure := &WorkerError{Rank: blamed.rank, Count: j.Count, Code: code, Signal: s, Log: blamed.log.name, LastLines: blamed.log.lastLines()}
		if s != nil {
			failure.Witness, failure.WitnessLines = j.witness()
		}
		return failure.exitCode(), failure
	case interrupted:
		err := error(ErrInterrupted)
		if ctx.Err() != nil {
			err = errors.Join(ErrInterrupted, ctx.Err())
		}
		return exitInterrupted, fmt.Errorf("launch: %w", err)
	}
	return exitDone, nil
}
