package parallel

import (
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// Pipeline is a model cut in stages, each a run of its blocks: what the articles
// call a pipeline cell. Any list of blocks can be cut between any two of them.
type Pipeline struct {
	Costs []BlockCost // of all blocks
	// Cuts has the first block of each stage but stage 0.
	Cuts []int
	// Loads has what each stage has to do; nil counts as zero values.
	Loads []StageLoad
}

// StageLoad is what a schedule asks of a stage. The zero value is a stage of rank
// 0 that holds one micro-batch.
type StageLoad struct {
	Rank      int  // the place in the pipe
	Held      int  // micro-batches held at a time; 0 means 1
	Recompute bool // the forward pass of blocks is run again in the backward pass
}

// CutError is an impossible cut of a model. Its text ends with a picture of the
// blocks and the cuts.
type CutError struct {
	Text    string
	Picture string
}

func (e *CutError) Error() string { return e.Text + "\n" + e.Picture }

// NewPipeline cuts a model of those blocks at the given places: the indices of
// the first blocks of all stages but the first. A stage without a block is a
// *CutError.
func NewPipeline(costs []BlockCost, cuts []int) (*Pipeline, error) {
	p := &Pipeline{Costs: costs, Cuts: cuts}
	before := 0
	for i, cut := range cuts {
		switch {
		case cut >= len(costs):
			return nil, p.fault("cut %d is before block %d, but the model has the blocks 0 to %d", i+1, cut, len(costs)-1)
		case cut <= before:
			return nil, p.fault("cut %d is before block %d, which leaves stage %d without a block", i+1, cut, i)
		}
		before = cut
	}
	return p, nil
}

// Stages returns how many there are.
func (p *Pipeline) Stages() int { return len(p.Cuts) + 1 }

// Blocks returns the blocks [lo, hi) of a stage.
func (p *Pipeline) Blocks(stage int) (lo, hi int) {
	hi = len(p.Costs)
	if stage > 0 {
		lo = p.Cuts[stage-1]
	}
	if stage < len(p.Cuts) {
		hi = p.Cuts[stage]
	}
	return lo, hi
}

// Cost adds up the costs of a stage's blocks; Output is the last one's.
func (p *Pipeline) Cost(stage int) BlockCost {
	var out BlockCost
	lo, hi := p.Blocks(stage)
	for _, c := range p.Costs[lo:hi] {
		if p.Loads != nil && p.Loads[stage].Recompute {
			c = c.recomputed()
		}
		out.Forward += c.Forward
		out.Backward += c.Backward
		out.Parameters += c.Parameters
		out.Activations += c.Activations
		out.Output = c.Output
	}
	out.Name = p.Costs[lo].Name
	if hi-lo > 1 {
		out.Name += " to " + p.Costs[hi-1].Name
	}
	return out
}

// ScheduleCosts returns the stages' times in the form that a schedule is
// simulated with. The halves of a backward pass count as equal.
func (p *Pipeline) ScheduleCosts() schedule.Costs {
	var out schedule.Costs
	for stage := range p.Stages() {
		c := p.Cost(stage)
		out.Stages = append(out.Stages, schedule.StageCost{Forward: c.Forward, Input: c.Backward / 2, Weight: c.Backward / 2})
	}
	return out
}

func (p *Pipeline) fault(format string, args ...any) error {
	return &CutError{fmt.Sprintf(format, args...), p.Picture()}
}

// Picture draws the blocks in a row with a bar before the first block of each
// stage, several lines of them for a large model.
func (p *Pipeline) Picture() string {
	var out strings.Builder
	line := ""
	add := func(word string) {
		if line != "" && len(line)+1+len(word) > 100 {
			out.WriteString(line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	for i, c := range p.Costs {
		for _, cut := range p.Cuts {
			if cut == i {
				add("|")
			}
		}
		add(fmt.Sprintf("%d:%s", i, c.Name))
	}
	for _, cut := range p.Cuts {
		if cut >= len(p.Costs) {
			add("|")
		}
	}
	out.WriteString(line + "\n")
	return out.String()
}
