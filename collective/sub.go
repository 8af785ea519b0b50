package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// Sub implements Comm: the new group shares the transport, has this group's
// config and is closed by its caller. It is agreed upon by a barrier, so ranks
// that list different ranks get an error.
func (g *Group) Sub(ctx context.Context, ranks []int) (Comm, error) {
	global := make([]int, len(ranks))
	for i, r := range ranks {
		if r < 0 || r >= len(g.ranks) || slices.Contains(ranks[:i], r) {
			return nil, fmt.Errorf("rank %d, group %s: sub-group of %v: no distinct ranks below %d", g.rank, g.config.Name, ranks, len(g.ranks))
		}
		global[i] = g.ranks[r]
	}
	g.mu.Lock()
	g.subs++
	config := g.config
	config.Name = fmt.Sprintf("%s.%d", g.config.Name, g.subs)
	g.mu.Unlock()
	agree := Call{Kind: plan.Barrier, Label: fmt.Sprintf("sub-group %s of ranks %v", config.Name, ranks)}
	agree.agree = uint32(groupID(config, global, g.id))
	if err := g.Start(ctx, agree).Wait(ctx); err != nil {
		return nil, err
	}
	if !slices.Contains(ranks, g.rank) {
		return nil, nil
	}
	return newGroup(g.transport, config, global, g.id, g.family), nil
}
