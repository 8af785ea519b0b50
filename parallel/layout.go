package parallel

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// layout is who holds what among the ranks of the world.
type layout struct {
	world  collective.Comm
	own    int     // this rank in the world
	from   int     // the rank of the world that places begins with
	stages int     // of the model
	places []place // by rank of the world
	losses []int   // by column: the rank whose losses count
	twins  []int   // by column: a rank that holds this rank's stages
}

// place is what a rank holds.
type place struct {
	column, columns int
	first, last     int // of its stages
	width           int // of its rows of leaves
}

const placeWidth = 5

// newLayout is collective over a world that is given. Without one the model is
// one stage, and every rank a column.
func newLayout(ctx context.Context, world collective.Comm, stages []*stage) (layout, error) {
	comm, width := stages[0].Comm, leafHead
	for _, s := range stages {
		s.offset = width
		width += runningWidth(s.running)
	}
	own := place{comm.Rank(), comm.Size(), stages[0].Index, stages[len(stages)-1].Index, width}
	l := layout{world: world}
	if world == nil {
		l.world = comm
		for r := range comm.Size() {
			own.column = r
			l.places = append(l.places, own)
		}
		l.own = comm.Rank()
		return l, l.arrange()
	}
	all := make([]int32, placeWidth*world.Size())
	in := []int32{int32(own.column), int32(own.columns), int32(own.first), int32(own.last), int32(own.width)}
	call := collective.Call{Kind: plan.AllGather, In: device.FromI32(in), Out: device.FromI32(all), Label: "stages of the ranks"}
	if err := world.Start(ctx, call).Wait(ctx); err != nil {
		return layout{}, fmt.Errorf("asking the ranks for their stages: %w", err)
	}
	for ; len(all) > 0; all = all[placeWidth:] {
		l.places = append(l.places, place{int(all[0]), int(all[1]), int(all[2]), int(all[3]), int(all[4])})
	}
	l.own = world.Rank()
	return l, l.arrange()
}

// arrange finds the ranks to listen to. Where several ranks of a column hold the
// same, the lowest is heard.
func (l *layout) arrange() error {
	own := l.places[l.own]
	l.losses, l.twins = make([]int, own.columns), make([]int, own.columns)
	for _, p := range l.places {
		l.stages = max(l.stages, p.last+1)
	}
	for c := range own.columns {
		l.losses[c], l.twins[c] = -1, -1
	}
	for r, p := range l.places {
		if p.columns != own.columns {
			return fmt.Errorf("%w: rank %d is one of %d columns, rank %d of %d", ErrDiffer, r, p.columns, l.own, own.columns)
		}
		if p.last == l.stages-1 && l.losses[p.column] < 0 {
			l.losses[p.column] = r
		}
		if p.first == own.first && l.twins[p.column] < 0 {
			l.twins[p.column] = r
		}
	}
	for c := range own.columns {
		if l.losses[c] < 0 || l.twins[c] < 0 {
			return fmt.Errorf("%w: column %d of %d lacks a rank with stage %d or %d", ErrDiffer, c, own.columns, own.first, l.stages-1)
		}
	}
	return nil
}

// width is that of this rank's rows of leaves.
func (l *layout) width() int { return l.places[l.own].width }

// cut reports whether the model is cut over ranks.
func (l *layout) cut() bool {
	for _, p := range l.places {
		if p.first != l.places[0].first || p.last != l.places[0].last {
			return true
		}
	}
	return false
}
