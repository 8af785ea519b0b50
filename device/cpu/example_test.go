package cpu_test

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
)

// A product with a bias and a fused activation.
func Example() {
	d, err := cpu.New(cpu.Config{Threads: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	a := device.FromF32([]float32{1, 2, 3, 4}) // 2 x 2
	b := device.FromF32([]float32{1, 0, 0, -1})
	bias := device.FromF32([]float32{10, 1})
	c, _ := d.Alloc(device.F32, 4)
	d.Kernels().MatMul(device.MatMul{M: 2, N: 2, K: 2, Activation: device.ReLU}, c, a, b, bias)
	fmt.Println(c.F32())
	// Output: [11 0 13 0]
}
