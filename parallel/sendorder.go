package parallel

import (
	"cmp"
	"slices"
	"time"
)

// Send is a message that waits for a link while a backward pass and the next
// forward pass go on.
type Send struct {
	Ready time.Duration // when it can be sent, after the backward pass has begun
	Cost  time.Duration // how long it takes the link
	Need  time.Duration // when it is needed, after the forward pass has begun, if that never waits
}

// mostSearched bounds the time that SendOrder takes: about the cube of it.
const mostSearched = 200

// SendOrder returns the order in which to send messages over one link so that a
// forward pass that takes that long ends early. It begins with what is nearly
// best: whenever the link is free, of those that are ready the one that is needed
// first. So what a backward pass gives first and the next forward pass needs last
// fills the link until more urgent ones are ready, and what is left of it goes
// behind them. But a long one may begin just before an urgent one is ready; so
// then each is put where StepTime is least, as long as that helps.
func SendOrder(sends []Send, forward time.Duration) []int {
	order := urgentFirst(sends)
	if len(order) > mostSearched {
		return order
	}
	c := newCycle(sends, forward)
	for best, again := c.time(order), true; again; {
		again = false
		for from := range order {
			for to := range order {
				move(order, from, to)
				if t := c.time(order); t < best {
					best, again = t, true
					break // from has another message now
				}
				move(order, to, from)
			}
		}
	}
	return order
}

// urgentFirst is SendOrder without a search.
func urgentFirst(sends []Send) []int {
	left := make([]int, len(sends))
	for i := range left {
		left[i] = i
	}
	out := make([]int, 0, len(sends))
	for now := time.Duration(0); len(left) > 0; {
		first := slices.MinFunc(left, func(a, b int) int {
			x, y := sends[a], sends[b]
			return cmp.Or(cmp.Compare(max(x.Ready, now), max(y.Ready, now)), cmp.Compare(x.Need, y.Need), cmp.Compare(b, a))
		})
		now = max(now, sends[first].Ready) + sends[first].Cost
		out = append(out, first)
		left = slices.DeleteFunc(left, func(k int) bool { return k == first })
	}
	return out
}

// StepTime is the time from the beginning of a backward pass to the end of the next
// forward pass, which waits for each message when it needs it.
func StepTime(sends []Send, order []int, forward time.Duration) time.Duration {
	return newCycle(sends, forward).time(order)
}

// cycle is a backward pass and the forward pass after it.
type cycle struct {
	sends   []Send
	forward time.Duration
	needs   []int           // the messages in the order in which they are needed
	arrival []time.Duration // scratch
}

func newCycle(sends []Send, forward time.Duration) *cycle {
	c := &cycle{sends: sends, forward: forward, arrival: make([]time.Duration, len(sends))}
	for k := range sends {
		c.needs = append(c.needs, k)
	}
	slices.SortStableFunc(c.needs, func(a, b int) int { return cmp.Compare(sends[a].Need, sends[b].Need) })
	return c
}

func (c *cycle) time(order []int) time.Duration {
	var link, now, done time.Duration
	for _, k := range order {
		s := &c.sends[k]
		link = max(link, s.Ready) + s.Cost
		c.arrival[k] = link
		now = max(now, s.Ready)
	}
	for _, k := range c.needs {
		need := c.sends[k].Need
		now = max(now+need-done, c.arrival[k])
		done = need
	}
	return now + c.forward - done
}

// move takes an element of a list elsewhere.
func move(list []int, from, to int) {
	k := list[from]
	copy(list[from:], list[from+1:])
	copy(list[to+1:], list[to:len(list)-1])
	list[to] = k
}
