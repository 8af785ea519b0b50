package parallel

import (
	"context"
	"fmt"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// gatherBytes returns what each rank of c gives, of any lengths.
func gatherBytes(ctx context.Context, c collective.Comm, own []byte, label string) ([][]byte, error) {
	lengths := make([]int64, c.Size())
	call := collective.Call{Kind: plan.AllGather, In: device.FromI64([]int64{int64(len(own))}), Out: device.FromI64(lengths), Label: label}
	if err := c.Start(ctx, call).Wait(ctx); err != nil {
		return nil, fmt.Errorf("gathering the %s: %w", label, err)
	}
	bounds := []int{0}
	for r, n := range lengths {
		bounds = append(bounds, bounds[r]+int(n))
	}
	all := make([]byte, bounds[len(lengths)])
	call = collective.Call{Kind: plan.AllGather, In: device.FromU8(own), Out: device.FromU8(all), InBounds: bounds, Label: label}
	if err := c.Start(ctx, call).Wait(ctx); err != nil {
		return nil, fmt.Errorf("gathering the %s: %w", label, err)
	}
	out := make([][]byte, len(lengths))
	for r := range out {
		out[r] = all[bounds[r]:bounds[r+1]]
	}
	return out, nil
}
