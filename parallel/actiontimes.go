package parallel

import (
	"time"

	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// ActionTimes is what the actions of a stage took, means over the micro-batches of a
// step, waiting for other ranks left out. What the schedule does not have, and without
// ExecutorConfig.Events everything, is 0.
type ActionTimes struct {
	Stage                            int
	Forward, Backward, Input, Weight time.Duration
}

// ActionTimes appends what the actions of each stage of this rank took in the last
// step to list, for a model that is cut.
func (e *Executor) ActionTimes(list []ActionTimes) []ActionTimes {
	for _, r := range e.stages {
		list = append(list, ActionTimes{r.Index, r.times.mean(schedule.Forward), r.times.mean(schedule.Backward), r.times.mean(schedule.Input), r.times.mean(schedule.Weight)})
	}
	return list
}

// actionTimes adds up, by kind.
type actionTimes struct {
	nanoseconds, count [schedule.Weight + 1]int64
}

func (t *actionTimes) add(kind schedule.Kind, nanoseconds int64) {
	t.nanoseconds[kind] += nanoseconds
	t.count[kind]++
}

func (t *actionTimes) mean(kind schedule.Kind) time.Duration {
	return time.Duration(t.nanoseconds[kind] / max(t.count[kind], 1))
}
