package tcp

import (
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
)

func BenchmarkWaiting(b *testing.B) {
	commtest.BenchmarkWaiting(b, func(tb testing.TB, n int) []collective.Transport {
		transports := make([]collective.Transport, n)
		for i, r := range world(tb, n) {
			transports[i] = r
		}
		return transports
	})
}
