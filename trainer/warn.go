package trainer

import "fmt"

// warnSingles tells once that a BatchNorm met a single value per channel, which
// has no variance, and used its running statistics.
func (s *session) warnSingles() {
	for _, state := range s.states {
		if r := state.Running; r != nil && r.Singles > 0 {
			s.states = nil
			s.emit(Event{Kind: Warned, Text: fmt.Sprintf("%s met micro-batches with one value per channel and used its running statistics for them: larger micro-batches or images avoid that", r.Name)})
			return
		}
	}
}
