package metrics_test

import (
	"fmt"

	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/observe/metrics"
)

// One step of 9 ms: a call of 4 ms runs beside the backward pass for 3 of them.
func Example() {
	const ms = 1_000_000
	var times metrics.StepTimes
	for _, s := range []observe.Span{
		{Kind: observe.Step, Start: 0, End: 9 * ms},
		{Kind: observe.Forward, Start: 0, End: 2 * ms},
		{Kind: observe.Backward, Start: 2 * ms, End: 7 * ms},
		{Kind: observe.Call, Start: 4 * ms, End: 8 * ms, Bytes: 4096, BytesIn: 4096},
		{Kind: observe.Exposed, Start: 7 * ms, End: 8 * ms},
		{Kind: observe.Optimizer, Start: 8 * ms, End: 9 * ms},
	} {
		times.Add(s)
	}
	step := times.EndStep()
	fmt.Printf("forward %g, backward %g, optimizer %g of %g ms\n", step.Forward, step.Backward, step.Optimizer, step.Step)
	fmt.Printf("%.0f %% of the communication is hidden\n", *times.Overlap())
	// Output:
	// forward 2, backward 5, optimizer 1 of 9 ms
	// 75 % of the communication is hidden
}
