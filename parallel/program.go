package parallel

import (
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// program is a lowered schedule as one rank runs it.
type program struct {
	lowered schedule.Schedule
	list    []schedule.Action // this rank's
	names   []string          // of these
	owners  []int             // ranks by stage
	rank    int               // in the pipe
}

type programKey struct {
	micros   int
	training bool
}

// program returns the program for a run of that many micro-batches.
func (e *Executor) program(micros int) (*program, error) {
	key := programKey{micros, e.training}
	if p, ok := e.programs[key]; ok {
		return p, nil
	}
	s, err := e.schedule(micros)
	if err != nil {
		return nil, err
	}
	p := &program{owners: s.Owners()}
	if e.cfg.Pipe != nil {
		p.rank = e.cfg.Pipe.Rank()
	}
	if err := e.holds(s, p.rank); err != nil {
		return nil, err
	}
	if p.lowered, err = schedule.Lower(s); err != nil {
		return nil, err
	}
	p.list = p.lowered[p.rank]
	for _, a := range p.list {
		p.names = append(p.names, a.String())
	}
	e.programs[key] = p
	return p, nil
}

func (e *Executor) schedule(micros int) (s schedule.Schedule, err error) {
	count := micros
	if !e.training {
		micros = 0 // its stages are all that counts
	}
	if e.cfg.Schedule == nil {
		if e.cfg.Fusion.layout.cut() {
			return nil, errOneStage
		}
		s = schedule.OneStage(micros)
	} else if s, err = e.cfg.Schedule(micros); err != nil {
		return nil, err
	}
	if !e.training {
		s = schedule.Forwards(s.Owners(), count)
	}
	return s, nil
}

// holds refuses a schedule whose stages are not those that the ranks hold.
func (e *Executor) holds(s schedule.Schedule, rank int) error {
	ranks := 1
	if e.cfg.Pipe != nil {
		ranks = e.cfg.Pipe.Size()
	}
	if len(s) != ranks {
		return fmt.Errorf("parallel: a schedule of %d ranks for a pipeline of %d", len(s), ranks)
	}
	var own []int
	for _, r := range e.stages {
		own = append(own, r.Index)
	}
	if stages := s.Stages()[rank]; !slices.Equal(stages, own) {
		return fmt.Errorf("parallel: the schedule runs stages %v on rank %d of the pipeline, which holds %v", stages, rank, own)
	}
	if n := len(s.Owners()); n != e.cfg.Fusion.layout.stages {
		return fmt.Errorf("parallel: the schedule has %d stages, the model %d", n, e.cfg.Fusion.layout.stages)
	}
	return nil
}
