package trainer

import (
	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/parallel/schedule"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// Fits checks what can be told of a pipeline before any rank of a world starts: a
// schedule's file, that there are as many blocks as stages, and the cuts. Run
// checks the same; a launcher asks first, so that a mistake is told once.
func Fits(c *config.Config, world int) error {
	if c.Parallel.Pipeline == 1 {
		return nil
	}
	_, _, err := layOut(c, world)
	return err
}

// layOut cuts a model by the names of its blocks alone.
func layOut(c *config.Config, world int) (s schedule.Schedule, p *parallel.Pipeline, err error) {
	columns, err := config.Columns(c, world)
	if err != nil {
		return nil, nil, err
	}
	micro, err := config.Batches(c, columns)
	if err != nil {
		return nil, nil, err
	}
	var written schedule.Schedule
	if config.IsFile(c.Parallel.Schedule) {
		text, err := readFile(c, "parallel.schedule", c.Parallel.Schedule)
		if err != nil {
			return nil, nil, err
		}
		if written, err = readSchedule(c, text); err != nil {
			return nil, nil, err
		}
	}
	most := mostMicros(c, micro, columns)
	if s, err = scheduleFor(c, written, c.Parallel.Pipeline, most); err != nil {
		return nil, nil, err
	}
	costs := namesOf(c)
	if len(costs) == 0 {
		return s, nil, nil
	}
	if cuts := c.Parallel.Cuts; len(cuts) > 0 && config.IsFile(cuts[0]) {
		if costs, err = costsFrom(c, costs); err != nil {
			return nil, nil, err
		}
	}
	p, err = cutModel(c, costs, s)
	return s, p, err
}

// namesOf lists a model's blocks, whatever it reads; none if it cannot be built so.
func namesOf(c *config.Config) (out []parallel.BlockCost) {
	shape := data.Shape{Channels: 3, Height: 224, Width: 224, Classes: 10}
	if models.TakesText(c.Model.Name) {
		shape = data.Shape{Vocabulary: 256, Context: max(c.Model.Context, 1)}
	}
	m, err := models.New(c.Network(shape))
	if err != nil {
		return nil
	}
	for _, b := range m.Blocks {
		out = append(out, parallel.BlockCost{Name: b.Name()})
	}
	return out
}
