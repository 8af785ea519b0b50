package trainer

import "github.com/gradfusion/gradfusion/device"

// sizing is a device that gives memory and computes next to nothing, to find
// out what a network takes.
type sizing struct{ device.Device }

func (d sizing) Kernels() device.Kernels { return idle{d.Device.Kernels()} }

// idle leaves out the kernels of a forward pass that take time. Those that it
// does not know are run, on memory of any content.
type idle struct{ device.Kernels }

func (idle) Fill(device.Buf, float32)                                                         {}
func (idle) Copy(device.Buf, device.Buf)                                                      {}
func (idle) Add(device.Buf, device.Buf, device.Buf)                                           {}
func (idle) Activate(device.Activation, device.Buf, device.Buf)                               {}
func (idle) Dropout(device.Buf, device.Buf, float32, uint64)                                  {}
func (idle) MatMul(device.MatMul, device.Buf, device.Buf, device.Buf, device.Buf)             {}
func (idle) ConvForward(device.Conv, device.Buf, device.Buf, device.Buf, device.Buf)          {}
func (idle) PoolForward(device.Pool, device.Buf, device.Buf, device.Buf)                      {}
func (idle) GlobalAvgForward(device.Buf, device.Buf, int, int, int, int)                      {}
func (idle) EmbeddingForward(device.Embedding, device.Buf, device.Buf, device.Buf)            {}
func (idle) AttentionForward(device.Attention, device.Buf, device.Buf, device.Buf)            {}
func (idle) CopyChannels(device.Layout, device.Buf, int, int, device.Buf, int, int, int, int) {}

func (idle) Reorder(device.Buf, device.Layout, device.Buf, device.Layout, int, int, int, int) {}

func (idle) LayerNormForward(device.LayerNorm, device.Buf, device.Buf, device.Buf, device.Buf, device.Buf, device.Buf) {
}

func (idle) BatchNormForward(device.BatchNorm, device.Buf, device.Buf, device.Buf, device.Buf, device.Buf, device.Buf, device.Buf) {
}
