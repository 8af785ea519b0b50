package cpu_test

import (
	"testing"

	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/devicetest"
)

// TestWinogradOnAllShapes compares with sums in float64. A sum of a few products
// of normal numbers in float32 is off by 1e-7 of the rms; the transforms of
// 4 x 4 tiles make that some ten times as much, those of 2 x 2 less than twice.
func TestWinogradOnAllShapes(t *testing.T) {
	for _, set := range sets(t) {
		for method, bound := range map[string]float64{"auto": 5e-6, "winograd2": 2e-6, "winograd4": 5e-6} {
			if set == "portable" || set == "neon" {
				if method != "auto" {
					continue // they have no transforms
				}
				bound = 2e-6
			}
			t.Run(set+"/"+method, func(t *testing.T) {
				for _, threads := range []int{1, 3} {
					devicetest.Convolutions(t, open(t, cpu.Config{Kernels: set, Conv: method, Threads: threads}), bound)
				}
			})
		}
	}
}
