package plan_test

import (
	"fmt"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// A plan is proved, simulated and priced without a network.
func Example() {
	p := plan.Ring(plan.AllReduce, 3, 0)
	fmt.Print(p)
	fmt.Println("proof:", p.Check(plan.AllReduce, 0))

	vectors := [][]float64{{1, 2, 3}, {10, 20, 30}, {100, 200, 300}}
	add := func(dst, src []float64) {
		for i := range dst {
			dst[i] += src[i]
		}
	}
	if err := plan.Simulate(p, vectors, nil, add); err != nil {
		fmt.Println(err)
	}
	fmt.Println(vectors[1])
	fmt.Println(plan.Choose(plan.AllReduce, plan.World{Ranks: 8}, 64<<20, plan.Links{}).Name)
	// Output:
	// plan 3 ranks 3 chunks
	// 0:2>1:2+ 1:0>2:0+ 2:1>0:1+
	// 0:1>1:1+ 1:2>2:2+ 2:0>0:0+
	// 0:0>1:0 1:1>2:1 2:2>0:2
	// 0:2>1:2 1:0>2:0 2:1>0:1
	// proof: <nil>
	// [111 222 333]
	// halving-doubling
}
