package collective

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gradfusion/gradfusion/device"
)

// Split is collective over c: it makes one Comm of each colour's ranks, in the
// order of their keys and, where these are equal, of their ranks in c, and
// returns the caller's own. A rank of a negative colour gets nil. The caller
// closes it.
func Split(ctx context.Context, c Comm, colour, key int) (Comm, error) {
	type member struct{ colour, key, rank int }
	all := make([]int64, 2*c.Size())
	if err := AllGather(ctx, c, device.FromI64(all), device.FromI64([]int64{int64(colour), int64(key)})); err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	members := make([]member, c.Size())
	for r := range members {
		members[r] = member{int(all[2*r]), int(all[2*r+1]), r}
	}
	slices.SortFunc(members, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.colour, b.colour), cmp.Compare(a.key, b.key), cmp.Compare(a.rank, b.rank))
	})
	var own Comm
	for i := 0; i < len(members); {
		group := members[i].colour
		var ranks []int
		for ; i < len(members) && members[i].colour == group; i++ {
			ranks = append(ranks, members[i].rank)
		}
		if group < 0 {
			continue
		}
		sub, err := c.Sub(ctx, ranks)
		if err != nil {
			err = fmt.Errorf("split, colour %d: %w", group, err)
			if own != nil {
				err = errors.Join(err, own.Close())
			}
			return nil, err
		}
		if sub != nil {
			own = sub
		}
	}
	return own, nil
}

// Twin is collective over c: it makes a Comm of the same ranks in the same order,
// whose calls run beside those of c. The caller closes it.
func Twin(ctx context.Context, c Comm) (Comm, error) {
	ranks := make([]int, c.Size())
	for r := range ranks {
		ranks[r] = r
	}
	return c.Sub(ctx, ranks)
}
