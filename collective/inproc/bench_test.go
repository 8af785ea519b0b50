package inproc_test

import (
	"testing"

	"github.com/gradfusion/gradfusion/collective/commtest"
)

func BenchmarkAllReduce(b *testing.B) { commtest.Benchmark(b, connect) }

func BenchmarkWaiting(b *testing.B) { commtest.BenchmarkWaiting(b, connect) }
