package inproc_test

import (
	"flag"
	"testing"

	"github.com/gradfusion/gradfusion/collective/commtest"
)

var soakRanks = flag.String("ranks", "", "numbers of ranks of TestSoak, as 1..17,32; none: a sample")

func TestSoak(t *testing.T) {
	commtest.Soak(t, connect, *soakRanks)
}
