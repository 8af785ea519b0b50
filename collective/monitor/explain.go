package monitor

import (
	"context"
	"encoding/json"
	"time"
)

// askTime is what the ranks that a report asks have to answer.
const askTime = 2 * time.Second

// explain asks the missing ranks what they do and publishes the report.
func (m *Monitor) explain(s *stall) {
	ctx, cancel := context.WithTimeout(m.ctx, askTime)
	defer cancel()
	most := 4 // that are asked; the first explains the rest
	numbers := map[int]int{}
	for _, o := range s.others {
		if o.ask && most > 0 {
			most--
			m.judge.asked[o.rank]++
			numbers[o.rank] = m.judge.asked[o.rank]
			if m.Store.Set(ctx, m.askKey(o.rank, numbers[o.rank]), nil) != nil {
				return
			}
		}
	}
	for i := range s.others {
		o := &s.others[i]
		k, asked := numbers[o.rank]
		if !asked {
			continue
		}
		values, err := m.Store.Wait(ctx, m.answerKey(o.rank, k))
		if m.ctx.Err() != nil {
			return
		}
		if err != nil || json.Unmarshal(values[0], &o.doing) != nil {
			o.doing = []string{"(no answer: the process does not run, or has no core to)"}
		}
	}
	blamed := -1
	for _, o := range s.others {
		if o.blamed(s) && blamed < 0 {
			blamed = o.rank
		}
	}
	m.publish(Event{Kind: Stalled, Rank: blamed, Group: s.name, Text: s.report(m.who), Since: time.Now().Add(-s.longest)})
}

// publish tells all ranks, this one included.
func (m *Monitor) publish(e Event) {
	text, err := json.Marshal(e)
	if err != nil {
		return
	}
	select {
	case m.judge.news <- struct{}{}:
	case <-m.ctx.Done():
		return
	}
	defer func() { <-m.judge.news }()
	if m.Store.Set(m.ctx, m.newsKey(m.judge.told+1), text) == nil {
		m.judge.told++
	}
}
