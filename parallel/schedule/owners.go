package schedule

// Owners returns the rank of each stage, which is where the stage's first action
// stands; -1 for a stage without any.
func (s Schedule) Owners() []int {
	var out []int
	for rank, list := range s {
		for _, a := range list {
			if a.Kind == Wait || a.Stage < 0 {
				continue
			}
			for len(out) <= a.Stage {
				out = append(out, -1)
			}
			if out[a.Stage] < 0 {
				out[a.Stage] = rank
			}
		}
	}
	return out
}

// Stages returns the stages of each rank, in ascending order.
func (s Schedule) Stages() [][]int {
	out := make([][]int, len(s))
	for stage, rank := range s.Owners() {
		if rank >= 0 {
			out[rank] = append(out[rank], stage)
		}
	}
	return out
}

// Peer returns the rank at the other end of a send or receive; owners is what
// Owners returned. It is -1 for other actions.
func Peer(owners []int, a Action) int {
	if a.Kind < SendForward {
		return -1
	}
	return owners[otherEnd(a).Stage]
}

// BatchEnd returns the end of the batch that begins at list[i], of a lowered
// schedule: the sends and receives that follow each other there and have the
// same peer. A device without tags or independent streams starts them together.
// It returns i+1 for actions that are no send or receive.
func BatchEnd(owners []int, list []Action, i int) int {
	peer := Peer(owners, list[i])
	end := i + 1
	for peer >= 0 && end < len(list) && Peer(owners, list[end]) == peer {
		end++
	}
	return end
}
