package inproc_test

import (
	"testing"

	"github.com/gradfusion/gradfusion/collective/commtest"
)

func BenchmarkAllReduce(b *testing.B) { commtest.Benchmark(b, connect) }
