package collective

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// GatherBytes returns what each rank of c gives, of any lengths, by rank: the own
// part may be own itself, the others are in new memory. label says what it is, for
// reports and errors. It is collective over c.
func GatherBytes(ctx context.Context, c Comm, own []byte, label string) ([][]byte, error) {
	if c.Size() == 1 {
		return [][]byte{own}, nil
	}
	lengths := make([]int64, c.Size())
	call := Call{Kind: plan.AllGather, In: device.FromI64([]int64{int64(len(own))}), Out: device.FromI64(lengths), Label: "lengths of " + label}
	if err := Run(ctx, c, call); err != nil {
		return nil, fmt.Errorf("gathering the %s: %w", label, err)
	}
	bounds := []int{0}
	for r, n := range lengths {
		bounds = append(bounds, bounds[r]+int(n))
	}
	all := make([]byte, bounds[len(lengths)])
	call = Call{Kind: plan.AllGather, In: device.FromU8(own), Out: device.FromU8(all), InBounds: bounds, Label: label}
	if err := Run(ctx, c, call); err != nil {
		return nil, fmt.Errorf("gathering the %s: %w", label, err)
	}
	out := make([][]byte, len(lengths))
	for r := range out {
		out[r] = all[bounds[r]:bounds[r+1]]
	}
	return out, nil
}
