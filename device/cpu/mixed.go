package cpu

import "github.com/gradfusion/gradfusion/device"

// mixed is the kernels of a device for tensors of any floating-point type. What
// it does not do itself, on numbers that are converted on their way through a
// cache, device.Widened does on whole tensors. Tensors of float32 alone go to
// kernels in either case.
type mixed struct {
	*device.Widened
	k *kernels
}
