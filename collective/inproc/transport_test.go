package inproc_test

import (
	"testing"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
	"github.com/gradfusion/gradfusion/collective/inproc"
)

func connect(_ testing.TB, n int) []collective.Transport {
	ranks := make([]collective.Transport, n)
	for r, t := range inproc.New(n) {
		ranks[r] = t
	}
	return ranks
}

func TestConformance(t *testing.T) { commtest.Run(t, connect) }
