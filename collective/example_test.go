package collective_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/inproc"
	"github.com/gradfusion/gradfusion/device"
)

// Four ranks of one process sum and average their vectors.
func Example() {
	ctx := context.Background()
	var ranks sync.WaitGroup
	for r, transport := range inproc.New(4) {
		ranks.Go(func() {
			defer transport.Close()
			g := collective.NewGroup(transport, collective.GroupConfig{Name: "world"})
			defer g.Close()
			sum := []float32{float32(r + 1), float32(r + 2)}
			mean := []float32{float32(r + 1), float32(r + 2)}
			if err := collective.AllReduce(ctx, g, collective.Sum, device.FromF32(sum)); err != nil {
				fmt.Println(err)
			}
			if err := collective.AllReduce(ctx, g, collective.Mean, device.FromF32(mean)); err != nil {
				fmt.Println(err)
			}
			if r == 3 {
				fmt.Println(sum, mean)
			}
			if err := collective.Barrier(ctx, g); err != nil { // before anybody leaves
				fmt.Println(err)
			}
		})
	}
	ranks.Wait()
	// Output: [10 14] [2.5 3.5]
}
