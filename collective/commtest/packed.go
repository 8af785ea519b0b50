package commtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
)

// Packed tests calls of Groups whose floats are packed between hosts: large values go
// in pieces then, and small ones are messages of any length. Of the long ones there are
// more pieces than a sender may be ahead.
func Packed(t *testing.T, connect Connect) {
	hosts := [][]int{{0, 2}, {1}}
	with(t, connect, 3, func(w *world) {
		w.each(func(ctx context.Context, rank int, tr collective.Transport) error {
			g := collective.NewGroup(rehosted{tr, hosts}, collective.GroupConfig{
				Links: plan.Links{Across: plan.Link{BytesPerSecond: 100e6}}, Packed: collective.PackAcrossHosts,
			})
			defer g.Close()
			for _, name := range []string{"", "ring", "direct"} {
				var kinds []plan.Kind
				for _, k := range plan.Kinds() {
					if a, err := plan.Lookup(name); name == "" || err == nil && a.Does(k) {
						kinds = append(kinds, k)
					}
				}
				if err := everyLength(ctx, g, name, kinds); err != nil {
					return fmt.Errorf("packed, %s: %w", name, err)
				}
			}
			for _, length := range []int{64*16128 + 1, 3_000_000} {
				tr := trial{kind: plan.Broadcast, typ: device.F32, length: length, root: 1}
				if err := tr.run(ctx, g); err != nil {
					return fmt.Errorf("packed: %w", err)
				}
			}
			return collective.Barrier(ctx, g)
		})
	})
}
