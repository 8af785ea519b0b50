package naive_test

import (
	"testing"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/devicetest"
	"github.com/gradfusion/gradfusion/device/naive"
)

// TestConformance shows that the table itself is sound: outputs are written
// whole, padding stays zero, nothing is written outside.
func TestConformance(t *testing.T) {
	devicetest.Run(t, func() device.Device { return naive.New() })
}
