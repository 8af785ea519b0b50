package naive_test

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
)

// Memory from an arena, and a kernel that adds to what is there.
func Example() {
	dev := naive.New()
	arena := device.NewArena(dev)
	sums := arena.Get(device.F32, 2)
	dev.Kernels().Fill(sums, 10)
	dev.Kernels().SumRows(sums, device.FromF32([]float32{1, 2, 3, 4, 5, 6}), 3, 2, true)
	fmt.Println(sums.F32(), arena.Peak(), "bytes")
	arena.Put(sums)
	// Output: [19 22] 8 bytes
}
