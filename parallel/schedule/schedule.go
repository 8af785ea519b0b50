package schedule

import (
	"fmt"
	"strings"
)

// Schedule is the list of actions of each rank of one pipeline. It is a value
// to read: who changes a list that others hold copies it first.
type Schedule [][]Action

// OneStage is the schedule of a model that is not cut, over a run of micros
// micro-batches:
//
//	0F0 0B0 0F1 0B1 ... 0F(m-1) 0Arm 0B(m-1) Wait
//
// Gradients add up until Arm; during the last backward pass they are released
// as they become complete. A rank without a micro-batch has 0Arm Wait: it
// releases its gradients empty. micros below 0 panics.
func OneStage(micros int) Schedule {
	list := make([]Action, 0, 2*micros+2)
	for m := range micros {
		list = append(list, Action{Kind: Forward, Micro: m})
		if m == micros-1 {
			list = append(list, Action{Kind: Arm})
		}
		list = append(list, Action{Kind: Backward, Micro: m})
	}
	if micros == 0 {
		list = append(list, Action{Kind: Arm})
	}
	return Schedule{append(list, Action{Kind: Wait})}
}

// String returns one line per rank, actions separated by blanks; a rank that
// does nothing is "-".
func (s Schedule) String() string {
	var b strings.Builder
	for _, list := range s {
		for i, a := range list {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(a.String())
		}
		if len(list) == 0 {
			b.WriteByte('-')
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Parse reads what String prints. Blank lines count for nothing.
func Parse(text string) (Schedule, error) {
	var s Schedule
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		list := []Action{}
		if len(words) > 1 || words[0] != "-" {
			for _, w := range words {
				a, err := ParseAction(w)
				if err != nil {
					return nil, fmt.Errorf("schedule: line %d: %w", n+1, err)
				}
				list = append(list, a)
			}
		}
		s = append(s, list)
	}
	return s, nil
}
