package plan_test

import (
	"fmt"
	"testing"

	"github.com/gradfusion/gradfusion/collective/plan"
)

// BenchmarkChoose is what the first call of a shape costs every rank.
func BenchmarkChoose(b *testing.B) {
	for _, w := range []plan.World{{Ranks: 8}, {Ranks: 256}, hostsOf(256, 8), hostsOf(1024, 8)} {
		for _, bytes := range []int{4 << 10, 1 << 20, 64 << 20} {
			b.Run(fmt.Sprintf("%d ranks, %d hosts, %d bytes", w.Ranks, max(1, len(w.Hosts)), bytes), func(b *testing.B) {
				for b.Loop() {
					plan.Choose(plan.AllReduce, w, bytes, plan.Links{})
				}
			})
		}
	}
}
